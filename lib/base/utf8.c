#include "base/utf8.h"

#include <stdio.h>

/* Decodes the character at `p`, of which `n` bytes can be read. Returns its number of bytes (1 to
 * 4) and sets `*cp` to its code point. 0: the bytes are malformed. */
static size_t decode(const unsigned char *p, size_t n, uint32_t *cp)
{
    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < len) return 0;
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return 0;
    *cp = c;
    return len;
}

static bool is_control(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
}

bool mr_utf8_is_valid(struct mr_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t i = 0;
    while (i < s.n) {
        uint64_t eight = 0;
        if (s.n - i >= sizeof eight) { /* fast path: eight ASCII bytes at a time */
            memcpy(&eight, p + i, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                i += sizeof eight;
                continue;
            }
        }
        uint32_t cp = 0;
        size_t len = decode(p + i, s.n - i, &cp);
        if (!len) return false;
        i += len;
    }
    return true;
}

bool mr_utf8_has_control(struct mr_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    for (size_t i = 0; i < s.n;) {
        if (p[i] >= 0x20 && p[i] < 0x7f) { /* fast path: printable ASCII */
            i++;
            continue;
        }
        uint32_t cp = 0;
        size_t len = decode(p + i, s.n - i, &cp);
        if (!len || is_control(cp)) return true;
        i += len;
    }
    return false;
}

bool mr_utf8_is_key(struct mr_str s, size_t n_max)
{
    return s.n >= 1 && s.n <= n_max && !mr_utf8_has_control(s);
}

void mr_utf8_printable(const char *p, size_t n, char *out, size_t out_bytes)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t at = 0;
    for (size_t i = 0; i < n && out_bytes;) {
        uint32_t cp = 0;
        size_t len = decode(u + i, n - i, &cp);
        if (len && !is_control(cp)) {
            if (at + len >= out_bytes) break;
            memcpy(out + at, p + i, len);
            at += len;
            i += len;
            continue;
        }
        if (at + 4 >= out_bytes) break;
        (void)snprintf(out + at, 5, "\\x%02x", u[i]);
        at += 4;
        i++;
    }
    if (out_bytes) out[at] = 0;
}
