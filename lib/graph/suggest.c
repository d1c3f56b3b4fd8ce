/* Finds the known word that is nearest to an unknown word, for error texts (suggest.h). */
#include "graph/suggest.h"

#include <stdio.h>

#define WORD_BYTES_MAX 64
#define DISTANCE_MAX 2
#define OFFERS_MAX 100000

void mr_nearest_init(struct mr_nearest *n, struct mr_str want)
{
    *n = (struct mr_nearest){.want = want, .distance = DISTANCE_MAX + 1};
    if (want.n <= 3) n->distance = 2; /* more edits would turn a short word into almost any other */
}

/* Returns the edit distance, in which a swap of neighbours is one edit (Damerau-Levenshtein). A
 * result of `bound` or more is not exact. */
static unsigned distance(struct mr_str a, struct mr_str b, unsigned bound)
{
    unsigned rows[3][WORD_BYTES_MAX + 1];
    unsigned *before = rows[0], *last = rows[1], *now = rows[2];
    for (unsigned j = 0; j <= b.n; j++)
        last[j] = j;
    for (unsigned i = 1; i <= a.n; i++) {
        unsigned least = now[0] = i;
        for (unsigned j = 1; j <= b.n; j++) {
            unsigned same = a.p[i - 1] == b.p[j - 1] ? 0 : 1;
            unsigned d = MR_MIN(last[j - 1] + same, MR_MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                d = MR_MIN(d, before[j - 2] + 1);
            now[j] = d;
            least = MR_MIN(least, d);
        }
        if (least >= bound) return bound;
        unsigned *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[b.n];
}

void mr_nearest_offer(struct mr_nearest *n, struct mr_str word)
{
    if (!word.n || word.n > WORD_BYTES_MAX || n->want.n > WORD_BYTES_MAX) return;
    if (n->offers++ >= OFFERS_MAX) return;
    size_t apart = word.n > n->want.n ? word.n - n->want.n : n->want.n - word.n;
    if (apart >= n->distance) return;
    unsigned d = distance(n->want, word, n->distance);
    if (d >= n->distance || d >= n->want.n) return;
    n->distance = d;
    n->best = word;
}

const char *mr_nearest_hint(const struct mr_nearest *n, char out[MR_NEAREST_HINT_MAX])
{
    out[0] = 0;
    if (n->best.n)
        (void)snprintf(out, MR_NEAREST_HINT_MAX, " (did you mean \"%.*s\"?)", MR_STR_ARG(n->best));
    return out;
}

int mr_fail_within(struct mr_error *e, int err, const char *what, struct mr_str name)
{
    if (!e || !err) return err;
    char text[MR_ERROR_TEXT_MAX];
    memcpy(text, e->text, sizeof text);
    return mr_fail(e, err, "%s \"%.*s\": %s", what, MR_SHOWN(name), text);
}
