#include "tiles/picture.h"

#include "base/alloc.h"
#include "base/assert.h"

#define STEPS 31u

void mr_tile_picture_init(
    struct mr_tile_picture *p, uint64_t from, uint64_t until, uint32_t width, uint32_t rows)
{
    mr_assert(width);
    mr_assert(until > from);
    uint64_t window = until - from;
    mr_assert(window >= width);
    *p = (struct mr_tile_picture){.from = from, .until = until, .width = width, .rows = rows};
    p->shift = mr_tile_shift(window / width + 1);
    p->pixels_per_ns = (double)width / (double)window;
    p->edges = mr_alloc_array((size_t)width + 1, sizeof *p->edges);
    p->cells = mr_alloc_array(MR_MAX((size_t)rows * width, (size_t)1), sizeof *p->cells);
    for (uint32_t i = 0; i <= width; i++)
        p->edges[i] = from + window / width * i + window % width * i / width;
}

void mr_tile_picture_fini(struct mr_tile_picture *p)
{
    mr_release(p->edges);
    mr_release(p->cells);
    *p = (struct mr_tile_picture){0};
}

/* Returns the pixel of a time in the window. */
static uint32_t pixel_of(const struct mr_tile_picture *p, uint64_t at)
{
    uint32_t i = (uint32_t)((double)(at - p->from) * p->pixels_per_ns);
    i = MR_MIN(i, p->width - 1);
    while (p->edges[i] > at)
        i--;
    while (p->edges[i + 1] <= at)
        i++;
    return i;
}

void mr_tile_picture_add(struct mr_tile_picture *p, uint32_t row, const struct mr_tile_time *t)
{
    uint64_t from = MR_MAX(t->from, p->from), until = MR_MIN(t->until, p->until);
    if (from >= until || row >= p->rows) return;
    struct mr_tile_cell *cells = &p->cells[(size_t)row * p->width];
    uint32_t first = pixel_of(p, from);
    if (t->until <= p->edges[first + 1] && t->from >= p->from) {
        mr_tile_cell_add(&cells[first], p->shift, t->name, t->ns);
        return;
    }
    bool is_full = t->ns == t->until - t->from;
    double share = (double)t->ns / (double)(t->until - t->from);
    for (uint32_t i = first; i < p->width && p->edges[i] < until; i++) {
        uint64_t part = MR_MIN(until, p->edges[i + 1]) - MR_MAX(from, p->edges[i]);
        if (!is_full) part = (uint64_t)((double)part * share + 0.5);
        mr_tile_cell_add(&cells[i], p->shift, t->name, part);
    }
}

static uint8_t fill_of(uint64_t time, uint64_t whole)
{
    uint64_t step = whole ? (time * STEPS + whole / 2) / whole : STEPS;
    return (uint8_t)(MR_MAX(MR_MIN(step, (uint64_t)STEPS), UINT64_C(1)) * 255 / STEPS);
}

uint32_t mr_tile_picture_runs(
    const struct mr_tile_picture *p, uint32_t row, bool of_name, struct mr_tile_run *out)
{
    mr_assert(row < p->rows);
    const struct mr_tile_cell *cells = &p->cells[(size_t)row * p->width];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->width; i++) {
        uint32_t time = 0;
        struct mr_tile_run run = {.length = 1, .name = mr_tile_cell_top(&cells[i], &time)};
        if (!of_name) time = cells[i].busy;
        uint64_t whole = (p->edges[i + 1] - p->edges[i]) >> p->shift;
        if (run.name != MR_TILE_NONE) run.fill = fill_of(time, whole);
        struct mr_tile_run *last = count ? &out[count - 1] : NULL;
        if (last && last->name == run.name && last->fill == run.fill)
            last->length++;
        else
            out[count++] = run;
    }
    return count;
}
