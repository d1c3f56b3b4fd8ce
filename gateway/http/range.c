/* Parses a Range header with one range of bytes, and the list of tags in If-None-Match. */
#include "gateway/http/range.h"

#include <strings.h>

static struct mr_str trim(struct mr_str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = mr_str_of(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Reads a number of one or more digits. A number that is too large becomes UINT64_MAX. */
static bool number(struct mr_str s, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        uint64_t digit = (uint64_t)(s.p[i] - '0');
        *out = *out > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *out * 10 + digit;
    }
    return s.n > 0;
}

bool mr_range_parse(struct mr_str header, struct mr_range *out)
{
    static const char unit[] = "bytes=";
    size_t unit_n = sizeof unit - 1;
    if (header.n <= unit_n || strncasecmp(header.p, unit, unit_n) != 0) return false;
    struct mr_str s = trim(mr_str_of(header.p + unit_n, header.n - unit_n));
    const char *dash = s.n ? memchr(s.p, '-', s.n) : NULL;
    if (!dash) return false;
    size_t at = (size_t)(dash - s.p);
    struct mr_str first = mr_str_of(s.p, at), last = mr_str_of(dash + 1, s.n - at - 1);
    *out = (struct mr_range){.to = UINT64_MAX, .is_suffix = !first.n};
    if (out->is_suffix) return number(last, &out->from);
    if (!number(first, &out->from)) return false;
    return !last.n || (number(last, &out->to) && out->to >= out->from);
}

bool mr_range_within(const struct mr_range *r, uint64_t total, uint64_t *from, uint64_t *n)
{
    if (r->is_suffix) {
        *n = MR_MIN(r->from, total);
        *from = total - *n;
        return *n > 0;
    }
    if (r->from >= total) return false;
    *from = r->from;
    *n = MR_MIN(r->to, total - 1) - r->from + 1;
    return true;
}

bool mr_etag_is_known(struct mr_str header, const char *tag)
{
    struct mr_str rest = header;
    while (rest.n) {
        const char *comma = memchr(rest.p, ',', rest.n);
        size_t n = comma ? (size_t)(comma - rest.p) : rest.n;
        struct mr_str one = trim(mr_str_of(rest.p, n));
        size_t gone = comma ? n + 1 : n;
        rest = mr_str_of(rest.p + gone, rest.n - gone);
        if (mr_str_eq(one, MR_STR("*"))) return true;
        if (one.n > 2 && !memcmp(one.p, "W/", 2)) one = mr_str_of(one.p + 2, one.n - 2);
        if (mr_str_eq(one, mr_str(tag))) return true;
    }
    return false;
}
