/* Splits the lists in Accept and Accept-Encoding, and compares the weights (q) of their items. */
#include "gateway/http/media.h"

#include <strings.h>

static struct mr_str trim(struct mr_str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = mr_str_of(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Returns the text of `rest` before the first `at`, and removes this text and `at` from `rest`. */
static struct mr_str cut(struct mr_str *rest, char at)
{
    const char *mark = rest->n ? memchr(rest->p, at, rest->n) : NULL;
    size_t n = mark ? (size_t)(mark - rest->p) : rest->n;
    struct mr_str piece = mr_str_of(rest->p, n);
    size_t gone = mark ? n + 1 : n;
    *rest = mr_str_of(rest->p + gone, rest->n - gone);
    return trim(piece);
}

static bool same(struct mr_str s, const char *text)
{
    return s.n == strlen(text) && strncasecmp(s.p, text, s.n) == 0;
}

bool mr_media_is(struct mr_str header, const char *type)
{
    return same(cut(&header, ';'), type);
}

static bool covers(struct mr_str range, const char *type)
{
    if (same(range, "*/*") || same(range, "*") || same(range, type)) return true;
    if (range.n < 2 || range.p[range.n - 1] != '*' || range.p[range.n - 2] != '/') return false;
    return strlen(type) > range.n - 1 && strncasecmp(range.p, type, range.n - 1) == 0;
}

/* Returns the weight in thousandths: 800 for "0.8"; 0 if `q` is not a weight. */
static int parse_q(struct mr_str q)
{
    if (q.n == 0 || (q.p[0] != '0' && q.p[0] != '1')) return 0;
    int v = (q.p[0] - '0') * 1000, unit = 100;
    for (size_t i = 2; i < q.n && unit && q.p[1] == '.'; i++, unit /= 10)
        if (q.p[i] >= '0' && q.p[i] <= '9') v += unit * (q.p[i] - '0');
    return MR_MIN(v, 1000);
}

static int quality(struct mr_str range_and_parameters, struct mr_str *range)
{
    struct mr_str rest = range_and_parameters;
    *range = cut(&rest, ';');
    int q = 1000;
    while (rest.n) {
        struct mr_str parameter = cut(&rest, ';');
        if (parameter.n > 2 && (parameter.p[0] | 32) == 'q' && parameter.p[1] == '=')
            q = parse_q(mr_str_of(parameter.p + 2, parameter.n - 2));
    }
    return q;
}

int mr_media_pick(struct mr_str accept, const char *const *offers, size_t offers_count)
{
    int best = -1, best_q = 0;
    if (trim(accept).n == 0) return offers_count ? 0 : -1;
    for (size_t i = 0; i < offers_count; i++) {
        struct mr_str rest = accept;
        int offer_q = 0;
        /* Of the ranges that cover the offer, the most specific decides. */
        size_t exact = 0;
        while (rest.n) {
            struct mr_str range;
            int q = quality(cut(&rest, ','), &range);
            if (!covers(range, offers[i])) continue;
            size_t specific = same(range, offers[i]) ? 3 : range.n > 3 ? 2 : 1;
            if (specific < exact) continue;
            exact = specific;
            offer_q = q;
        }
        if (offer_q <= best_q) continue;
        best_q = offer_q;
        best = (int)i;
    }
    return best;
}

bool mr_media_takes(struct mr_str accept_encoding, const char *coding)
{
    struct mr_str rest = accept_encoding;
    int named = -1, any = 0;
    while (rest.n) {
        struct mr_str name;
        int q = quality(cut(&rest, ','), &name);
        if (same(name, coding)) named = q;
        if (same(name, "*")) any = q;
    }
    return named >= 0 ? named > 0 : any > 0;
}
