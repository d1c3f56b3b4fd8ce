/* Times are added to the finest level. The levels above it are computed when a picture is drawn,
 * and only where the finest level has changed since the last picture. */
#include "tiles/pyramid.h"

#include "base/alloc.h"
#include "base/assert.h"

#define LEVEL_BITS 2u /* a bucket is 2^LEVEL_BITS times as wide as one of the level below */
#define LEVELS_MAX 16u
#define BUCKETS_MIN 4u    /* of the finest level of a lane, however many lanes there are */
#define BUCKETS_FIRST 64u /* in a short timeline, if the limit of cells allows it */
#define FINEST_BITS 8u    /* at first, a bucket of the finest level has 256 ns */

struct lane {
    struct mr_tile_cell *cells;       /* owned; level k begins at the index level_at[k] */
    uint64_t dirty_from, dirty_until; /* changed buckets of the finest level, by number */
};

struct mr_tile_pyramid {
    uint32_t cells_max;
    unsigned bits; /* a bucket of the finest level has 2^bits ns */
    uint64_t
        first; /* number of the first bucket of the finest level; bucket k begins at k << bits */
    uint64_t count; /* buckets of the finest level */
    uint64_t used;  /* the number after the last bucket that is covered */
    unsigned levels;
    uint64_t level_at[LEVELS_MAX + 1]; /* level_at[levels]: number of all cells of a lane */
    struct lane *lanes;
    uint32_t lanes_count;
};

struct mr_tile_pyramid *mr_tile_pyramid_new(uint32_t cells_max)
{
    struct mr_tile_pyramid *p = mr_alloc(sizeof *p);
    p->cells_max = cells_max;
    p->bits = FINEST_BITS;
    return p;
}

void mr_tile_pyramid_free(struct mr_tile_pyramid **pp)
{
    struct mr_tile_pyramid *p = *pp;
    *pp = NULL;
    if (!p) return;
    for (uint32_t i = 0; i < p->lanes_count; i++)
        mr_release(p->lanes[i].cells);
    mr_release(p->lanes);
    mr_release(p);
}

uint64_t mr_tile_pyramid_bucket_ns(const struct mr_tile_pyramid *p)
{
    return UINT64_C(1) << p->bits;
}

size_t mr_tile_pyramid_bytes(const struct mr_tile_pyramid *p)
{
    return p->lanes_count *
           (sizeof *p->lanes + p->level_at[p->levels] * sizeof(struct mr_tile_cell));
}

static unsigned shift_of(const struct mr_tile_pyramid *p, unsigned level)
{
    return mr_tile_shift(UINT64_C(1) << (p->bits + LEVEL_BITS * level));
}

/* Returns the number of the first bucket of a level, and stores the number of its buckets. */
static uint64_t level_of(const struct mr_tile_pyramid *p, unsigned level, uint64_t *count)
{
    uint64_t first = p->first >> LEVEL_BITS * level;
    *count = p->count ? ((p->first + p->count - 1) >> LEVEL_BITS * level) - first + 1 : 0;
    return first;
}

static void lane_alloc(const struct mr_tile_pyramid *p, struct lane *l)
{
    *l = (struct lane){.dirty_from = UINT64_MAX};
    l->cells = mr_alloc_array(p->level_at[p->levels], sizeof *l->cells);
}

static void mark(struct lane *l, uint64_t from, uint64_t until)
{
    l->dirty_from = MR_MIN(l->dirty_from, from);
    l->dirty_until = MR_MAX(l->dirty_until, until);
}

/* Moves the cells of a lane to the buckets of the new layout `to`. */
static void lane_move(
    const struct mr_tile_pyramid *from, const struct mr_tile_pyramid *to, struct lane *l)
{
    struct lane moved;
    lane_alloc(to, &moved);
    unsigned coarser = to->bits - from->bits;
    for (uint64_t i = 0; i < from->used - from->first && from->count; i++) {
        const struct mr_tile_cell *c = &l->cells[i];
        if (!c->busy) continue;
        uint64_t bucket = (from->first + i) >> coarser;
        mr_tile_cell_merge(&moved.cells[bucket - to->first], shift_of(to, 0), c, shift_of(from, 0));
        mark(&moved, bucket, bucket + 1);
    }
    mr_release(l->cells);
    *l = moved;
}

static void layout(struct mr_tile_pyramid *p, uint64_t count)
{
    uint64_t buckets = count;
    p->count = count;
    p->levels = 0;
    p->level_at[0] = 0;
    do {
        p->level_at[p->levels + 1] = p->level_at[p->levels] + buckets;
        p->levels++;
        (void)level_of(p, p->levels, &buckets);
    } while (buckets > 4 && p->levels < LEVELS_MAX);
}

/* Returns how many buckets of the finest level each lane may have. */
static uint64_t buckets_max(const struct mr_tile_pyramid *p, uint32_t lanes)
{
    uint64_t all = (uint64_t)p->cells_max * 3 / 4; /* the levels above need a third as much */
    return MR_MAX(all / MR_MAX(lanes, 1u), (uint64_t)BUCKETS_MIN);
}

void mr_tile_pyramid_cover(struct mr_tile_pyramid *p, uint32_t lanes, uint64_t from, uint64_t until)
{
    if (until <= from) until = from + 1;
    if (p->count && lanes <= p->lanes_count && from >= p->first << p->bits &&
        until <= p->used << p->bits)
        return;
    struct mr_tile_pyramid to = *p;
    lanes = MR_MAX(lanes, p->lanes_count);
    if (p->count) {
        from = MR_MIN(from, p->first << p->bits);
        until = MR_MAX(until, p->used << p->bits);
    }
    uint64_t max = buckets_max(p, lanes);
    while (((until - 1) >> to.bits) - (from >> to.bits) + 1 > max)
        to.bits++;
    to.first = from >> to.bits;
    to.used = ((until - 1) >> to.bits) + 1;
    uint64_t need = to.used - to.first;
    /* More lanes lower `max`. The lanes are laid out again only if they exceed it by a quarter:
     * otherwise, each new lane could move the cells of all lanes. */
    bool fits = to.bits == p->bits && p->count && to.first == p->first && need <= p->count &&
                p->count <= max + max / 4;
    if (!fits) {
        layout(&to, MR_MIN(MR_MAX(need + need / 2, (uint64_t)BUCKETS_FIRST), max));
        for (uint32_t i = 0; i < p->lanes_count; i++)
            lane_move(p, &to, &p->lanes[i]);
    }
    struct lane *all = p->lanes;
    *p = to;
    if (lanes == p->lanes_count) return;
    p->lanes = mr_grow(all, p->lanes_count * sizeof *all, lanes * sizeof *all);
    for (; p->lanes_count < lanes; p->lanes_count++)
        lane_alloc(p, &p->lanes[p->lanes_count]);
}

void mr_tile_pyramid_add(struct mr_tile_pyramid *p, uint32_t lane, const struct mr_tile_time *t)
{
    if (t->until <= t->from) return;
    uint64_t first = t->from >> p->bits, last = (t->until - 1) >> p->bits;
    mr_assert(lane < p->lanes_count);
    mr_assert(first >= p->first);
    mr_assert(last < p->used);
    struct lane *l = &p->lanes[lane];
    struct mr_tile_cell *cells = l->cells;
    unsigned shift = shift_of(p, 0);
    mark(l, first, last + 1);
    if (first == last) {
        mr_tile_cell_add(&cells[first - p->first], shift, t->name, t->ns);
        return;
    }
    bool is_full = t->ns == t->until - t->from;
    double share = (double)t->ns / (double)(t->until - t->from);
    for (uint64_t k = first; k <= last; k++) {
        uint64_t part = MR_MIN(t->until, (k + 1) << p->bits) - MR_MAX(t->from, k << p->bits);
        if (!is_full) part = (uint64_t)((double)part * share + 0.5);
        mr_tile_cell_add(&cells[k - p->first], shift, t->name, part);
    }
}

/* Computes the levels above the finest one again where the finest one has changed. */
static void refresh(const struct mr_tile_pyramid *p, struct lane *l)
{
    if (l->dirty_from >= l->dirty_until) return;
    uint64_t from = l->dirty_from, until = l->dirty_until;
    for (unsigned k = 1; k < p->levels; k++) {
        uint64_t below_count = 0, count = 0;
        uint64_t below = level_of(p, k - 1, &below_count), first = level_of(p, k, &count);
        const struct mr_tile_cell *children = l->cells + p->level_at[k - 1];
        from >>= LEVEL_BITS;
        until = ((until - 1) >> LEVEL_BITS) + 1;
        for (uint64_t b = from; b < until; b++) {
            struct mr_tile_cell cell = {0};
            uint64_t child = MR_MAX(b << LEVEL_BITS, below);
            uint64_t end = MR_MIN((b + 1) << LEVEL_BITS, below + below_count);
            for (; child < end; child++)
                mr_tile_cell_merge(
                    &cell, shift_of(p, k), &children[child - below], shift_of(p, k - 1));
            l->cells[p->level_at[k] + (b - first)] = cell;
        }
    }
    l->dirty_from = UINT64_MAX;
    l->dirty_until = 0;
}

/* Returns the coarsest level that has at least two buckets for each pixel; 0 if none has. */
static unsigned level_for(const struct mr_tile_pyramid *p, const struct mr_tile_picture *picture)
{
    uint64_t pixel = (picture->until - picture->from) / picture->width;
    unsigned level = 0;
    while (level + 1 < p->levels && UINT64_C(2) << (p->bits + LEVEL_BITS * (level + 1)) <= pixel)
        level++;
    return level;
}

void mr_tile_pyramid_draw(
    struct mr_tile_pyramid *p, uint32_t lane, struct mr_tile_picture *picture, uint32_t row)
{
    if (lane >= p->lanes_count || !p->count) return;
    struct lane *l = &p->lanes[lane];
    refresh(p, l);
    unsigned level = level_for(p, picture);
    unsigned bits = p->bits + LEVEL_BITS * level, shift = shift_of(p, level);
    uint64_t count = 0, first = level_of(p, level, &count);
    uint64_t from = MR_MAX(first, picture->from >> bits);
    uint64_t until = MR_MIN(first + count, ((picture->until - 1) >> bits) + 1);
    for (uint64_t b = from; b < until; b++) {
        const struct mr_tile_cell *c = &l->cells[p->level_at[level] + (b - first)];
        if (!c->busy) continue;
        uint64_t counted = 0, whole = (uint64_t)c->busy << shift;
        struct mr_tile_time t = {.from = b << bits, .until = (b + 1) << bits};
        for (int i = 0; i < MR_TILE_NAMES; i++) {
            if (!c->time[i]) continue;
            t.name = c->name[i];
            t.ns = (uint64_t)c->time[i] << shift;
            counted += t.ns;
            mr_tile_picture_add(picture, row, &t);
        }
        t.name = MR_TILE_NONE;
        t.ns = whole - MR_MIN(whole, counted);
        if (t.ns) mr_tile_picture_add(picture, row, &t);
    }
}
