#include "tiles/cell.h"

#include <assert.h>

static_assert(MR_TILE_NAMES == 3, "count() looks at three counters");

unsigned mr_tile_shift(uint64_t ns)
{
    unsigned shift = 0;
    while (ns >> shift > UINT32_C(1) << 31)
        shift++;
    return shift;
}

static uint32_t sum_of(uint32_t a, uint64_t b)
{
    uint64_t sum = a + MR_MIN(b, (uint64_t)UINT32_MAX);
    return (uint32_t)MR_MIN(sum, (uint64_t)UINT32_MAX);
}

/* Adds `time` to the name's counter in `c->time`. If all counters belong to other names, the
 * smallest of the counters and `time` is subtracted from each of them. What remains of `time` goes
 * to a counter that is then 0. */
static void count(struct mr_tile_cell *c, uint16_t name, uint32_t time)
{
    uint32_t least = time;
    int free = -1;
    for (int i = 0; i < MR_TILE_NAMES; i++) {
        if (c->time[i] && c->name[i] == name) {
            c->time[i] = sum_of(c->time[i], time);
            return;
        }
        if (!c->time[i] && free < 0) free = i;
        least = MR_MIN(least, c->time[i]);
    }
    if (free < 0) {
        for (int i = 0; i < MR_TILE_NAMES; i++) {
            c->time[i] -= least;
            if (!c->time[i]) free = i;
        }
        time -= least;
        /* If all of them are 0 now, the new name gets 1, so that the cell has a name. */
        if (!time && !c->time[0] && !c->time[1] && !c->time[2]) time = 1;
    }
    if (!time) return;
    c->name[free] = name;
    c->time[free] = time;
}

void mr_tile_cell_add(struct mr_tile_cell *c, unsigned shift, uint16_t name, uint64_t ns)
{
    uint64_t time = shift ? (ns >> shift) + (ns >> (shift - 1) & 1) : ns;
    uint32_t cut = (uint32_t)MR_MIN(time, (uint64_t)UINT32_MAX);
    if (!cut) return;
    c->busy = sum_of(c->busy, cut);
    if (name != MR_TILE_NONE) count(c, name, cut);
}

static uint64_t scaled(uint32_t time, unsigned shift, unsigned from_shift)
{
    if (shift <= from_shift) return (uint64_t)time << (from_shift - shift);
    unsigned down = shift - from_shift;
    return down > 32 ? 0 : ((uint64_t)time + (UINT64_C(1) << (down - 1))) >> down;
}

void mr_tile_cell_merge(
    struct mr_tile_cell *c, unsigned shift, const struct mr_tile_cell *from, unsigned from_shift)
{
    if (!from->busy) return;
    c->busy = sum_of(c->busy, scaled(from->busy, shift, from_shift));
    for (int i = 0; i < MR_TILE_NAMES; i++) {
        uint64_t time = from->time[i] ? scaled(from->time[i], shift, from_shift) : 0;
        if (time) count(c, from->name[i], (uint32_t)MR_MIN(time, (uint64_t)UINT32_MAX));
    }
}

uint16_t mr_tile_cell_top(const struct mr_tile_cell *c, uint32_t *time)
{
    uint16_t top = MR_TILE_NONE;
    *time = 0;
    for (int i = 0; i < MR_TILE_NAMES; i++) {
        if (!c->time[i] || c->time[i] < *time) continue;
        if (c->time[i] == *time && c->name[i] > top) continue;
        top = c->name[i];
        *time = c->time[i];
    }
    return top;
}
