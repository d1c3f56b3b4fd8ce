#include "gateway/json/base64.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void mr_base64_encode(struct mr_str bytes, struct mr_buf *out)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t n = MR_MIN(bytes.n - i, (size_t)3);
        uint32_t v = (uint32_t)p[i] << 16;
        if (n > 1) v |= (uint32_t)p[i + 1] << 8;
        if (n > 2) v |= p[i + 2];
        char quad[4] = {letters[v >> 18], letters[v >> 12 & 63], '=', '='};
        if (n > 1) quad[2] = letters[v >> 6 & 63];
        if (n > 2) quad[3] = letters[v & 63];
        mr_buf_add(out, quad, sizeof quad);
    }
}

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+' || c == '-') return 62;
    if (c == '/' || c == '_') return 63;
    return -1;
}

int mr_base64_decode(struct mr_str text, struct mr_buf *out)
{
    size_t n = text.n;
    if (n % 4 == 0)
        for (int pads = 0; pads < 2 && n && text.p[n - 1] == '='; pads++)
            n--;
    if (n % 4 == 1) return MR_EINVAL;
    uint32_t v = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < n; i++) {
        int d = digit(text.p[i]);
        if (d < 0) return MR_EINVAL;
        v = v << 6 | (uint32_t)d;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        mr_buf_add_byte(out, (unsigned char)(v >> bits));
    }
    return MR_OK;
}
