#include "tiles/sheet.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdlib.h>

#define SHARE_BITS 12u
#define SHARE (UINT64_C(1) << SHARE_BITS)
/* a bucket is at least 2^SPANS_BITS times as wide as the median distance of spans */
#define SPANS_BITS 3u
#define BITS_MAX 48u
#define LOOK_BACK 8u /* number of the last pieces that are searched for a name */

void mr_tile_sheet_fini(struct mr_tile_sheet *s)
{
    mr_release(s->pieces);
    *s = (struct mr_tile_sheet){0};
}

static unsigned log_of(uint64_t ns)
{
    return ns ? 63u - (unsigned)__builtin_clzll(ns) : 0;
}

/* Returns the `bits` of a sheet of these spans. They follow from the median distance between the
 * ends of successive spans of a lane. So a few long spans do not make the buckets coarse. */
static unsigned bits_of(const struct mr_tile_span *spans, uint32_t count, uint32_t lanes)
{
    uint32_t logs[64] = {0}, seen = 0;
    uint64_t *ends = mr_alloc_array(lanes, sizeof *ends);
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_tile_span *s = &spans[i];
        uint64_t *end = &ends[s->lane];
        logs[log_of(*end && *end < s->until ? s->until - *end : s->until - s->from)]++;
        *end = MR_MAX(*end, s->until);
    }
    mr_release(ends);
    unsigned median = 0;
    while (median < 63 && (seen += logs[median]) <= count / 2)
        median++;
    return MR_MIN(median + 1 + SPANS_BITS, BITS_MAX);
}

static struct mr_tile_piece *piece_new(struct mr_tile_sheet *s)
{
    if (s->count == s->room) {
        uint32_t more = MR_MAX(1024u, s->room * 2);
        s->pieces = mr_grow(s->pieces, s->room * sizeof *s->pieces, more * sizeof *s->pieces);
        s->room = more;
    }
    return &s->pieces[s->count++];
}

static uint16_t share_of(uint64_t ns, unsigned bits)
{
    uint64_t share = bits >= SHARE_BITS
                         ? (ns + (UINT64_C(1) << (bits - SHARE_BITS) >> 1)) >> (bits - SHARE_BITS)
                         : ns << (SHARE_BITS - bits);
    return (uint16_t)MR_MIN(MR_MAX(share, UINT64_C(1)), SHARE);
}

/* Finds the piece of `name` in `bucket` among the last pieces of the lane. `began`: index of the
 * lane's first piece. NULL: a new piece is needed. */
static struct mr_tile_piece *piece_find(
    struct mr_tile_sheet *s, uint32_t began, uint64_t bucket, uint16_t name)
{
    for (uint32_t i = s->count; i > began && i + LOOK_BACK > s->count; i--) {
        struct mr_tile_piece *p = &s->pieces[i - 1];
        if (p->bucket != bucket) return NULL;
        if (p->name == name && !p->share) return p;
    }
    return NULL;
}

/* Adds the pieces of a span: the first bucket, the full buckets in the middle as one piece, and the
 * last bucket. Until lane_finish, a piece without a share has its ns in `buckets`. */
static void span_add(struct mr_tile_sheet *s, const struct mr_tile_span *span, uint32_t began)
{
    for (uint64_t at = span->from; at < span->until;) {
        uint64_t bucket = at >> s->bits;
        uint64_t end = MR_MIN(span->until, (bucket + 1) << s->bits);
        uint64_t full = at == bucket << s->bits ? (span->until - at) >> s->bits : 0;
        struct mr_tile_piece *p = full ? NULL : piece_find(s, began, bucket, span->name);
        if (!p) {
            p = piece_new(s);
            *p = (struct mr_tile_piece){.lane = span->lane, .name = span->name, .bucket = bucket};
        }
        p->buckets += full ? full : end - at;
        if (full) p->share = (uint16_t)SHARE;
        at = full ? at + (full << s->bits) : end;
    }
}

static int by_bucket(const void *a, const void *b)
{
    const struct mr_tile_piece *x = a, *y = b;
    if (x->bucket != y->bucket) return x->bucket < y->bucket ? -1 : 1;
    if (x->name != y->name) return x->name < y->name ? -1 : 1;
    return (x->share != 0) - (y->share != 0);
}

static void lane_finish(struct mr_tile_sheet *s, uint32_t began)
{
    struct mr_tile_piece *p = &s->pieces[began];
    uint32_t count = s->count - began;
    bool is_sorted = true;
    for (uint32_t i = 1; i < count; i++)
        if (p[i].bucket < p[i - 1].bucket) is_sorted = false;
    if (!is_sorted) qsort(p, count, sizeof *p, by_bucket);
    for (uint32_t i = 0; i < count; i++) {
        if (p[i].share) continue;
        p[i].share = share_of(p[i].buckets, s->bits);
        p[i].buckets = 1;
    }
}

/* Returns the indexes of the spans, sorted by lane and then by index. The caller frees them. */
static uint32_t *by_lane(const struct mr_tile_span *spans, uint32_t count, uint32_t lanes)
{
    uint32_t *order = mr_alloc_array(count, sizeof *order);
    uint32_t *at = mr_alloc_array((size_t)lanes + 1, sizeof *at);
    for (uint32_t i = 0; i < count; i++)
        at[spans[i].lane + 1]++;
    for (uint32_t i = 0; i < lanes; i++)
        at[i + 1] += at[i];
    for (uint32_t i = 0; i < count; i++)
        order[at[spans[i].lane]++] = i;
    mr_release(at);
    return order;
}

void mr_tile_sheet_make(struct mr_tile_sheet *s, const struct mr_tile_span *spans, uint32_t count)
{
    mr_assert(count);
    uint32_t lanes = 0, began = 0;
    s->count = 0;
    s->spans = count;
    s->from = UINT64_MAX;
    s->until = 0;
    for (uint32_t i = 0; i < count; i++) {
        lanes = MR_MAX(lanes, spans[i].lane + 1);
        s->from = MR_MIN(s->from, spans[i].from);
        s->until = MR_MAX(s->until, spans[i].until);
    }
    s->bits = bits_of(spans, count, lanes);
    uint32_t *order = by_lane(spans, count, lanes);
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_tile_span *span = &spans[order[i]];
        span_add(s, span, began);
        if (i + 1 < count && spans[order[i + 1]].lane == span->lane) continue;
        lane_finish(s, began);
        began = s->count;
    }
    mr_release(order);
}

struct mr_tile_time mr_tile_piece_time(const struct mr_tile_piece *p, unsigned bits)
{
    uint64_t ns = bits >= SHARE_BITS ? (uint64_t)p->share << (bits - SHARE_BITS)
                                     : (uint64_t)p->share >> (SHARE_BITS - bits);
    return (struct mr_tile_time){.from = p->bucket << bits,
        .until = (p->bucket + p->buckets) << bits,
        .ns = p->buckets > 1 ? p->buckets << bits : ns,
        .name = p->name};
}
