/* The picture of a timeline that a web page shows: rows of pixels. A row is a slot (executor
 * thread), and a pixel is an interval of time. Each pixel of a row has a cell (cell.h). Times may
 * be added in any order. */
#pragma once

#include "tiles/cell.h"

struct mr_tile_picture {
    uint64_t from, until;
    uint32_t width, rows;
    unsigned shift;
    uint64_t *edges; /* width + 1 times; pixel i begins at edges[i] and ends at edges[i + 1] */
    double pixels_per_ns;
    struct mr_tile_cell *cells; /* row by row */
};

/* The window from `from` to `until` must have at least one ns for each pixel. */
void mr_tile_picture_init(
    struct mr_tile_picture *p, uint64_t from, uint64_t until, uint32_t width, uint32_t rows);
void mr_tile_picture_fini(struct mr_tile_picture *p);

struct mr_tile_time { /* a slot spent `ns` of the time between `from` and `until` on a name */
    uint64_t from, until;
    uint64_t ns;   /* at most until - from; spread evenly over this time */
    uint16_t name; /* MR_TILE_NONE: not known */
};
void mr_tile_picture_add(struct mr_tile_picture *p, uint32_t row, const struct mr_tile_time *t);

struct mr_tile_run { /* neighboring pixels of a row with the same name and fill */
    uint32_t length; /* pixels */
    uint16_t name;   /* the name with the most time in each of these pixels; MR_TILE_NONE: none */
    uint8_t fill;    /* share of the pixel's time, 0-255, in 31 steps; above 0 if it has a name */
};
/* Stores the runs of a row in `out`, which has room for `width` runs, and returns their number.
 * `of_name`: `fill` is the share of the name alone; otherwise it is the share of all names. */
uint32_t mr_tile_picture_runs(
    const struct mr_tile_picture *p, uint32_t row, bool of_name, struct mr_tile_run *out);
