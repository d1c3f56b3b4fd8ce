/* A timeline as an image with a row for each lane (lanes.h). A pixel stands for a piece of time. It
 * has the operator that ran longest in this time, and the time in which tasks ran. Memory is
 * bounded by the size of the image. If several operators ran in one pixel, the operator is
 * approximate (Misra and Gries, Finding repeated elements, 1982, with one counter). */
#pragma once

#include "cli/export/lanes.h"

#define MR_RASTER_ROWS_MAX 128

struct mr_raster_pixel {
    uint32_t op;   /* number of the operator's name plus 1; 0: no task ran */
    float counter; /* the algorithm's counter for `op`, in ns */
    float busy_ns; /* time in which tasks ran */
};

struct mr_raster {
    uint64_t from, until; /* the window, ns */
    uint32_t width;       /* pixels of a row */
    struct mr_export_lanes lanes;
    struct mr_trace_names ops;
    struct mr_raster_pixel *rows[MR_RASTER_ROWS_MAX]; /* by lane */
    uint64_t spans;                                   /* spans that were added */
};

/* `from` < `until`. */
void mr_raster_init(struct mr_raster *r, uint64_t from, uint64_t until, uint32_t width);
void mr_raster_fini(struct mr_raster *r);
/* Adds a span. The caller passes the spans in the order of their ends. The image lacks the lanes
 * after the first MR_RASTER_ROWS_MAX. */
void mr_raster_add(struct mr_raster *r, const struct mr_export_span *span);
/* Returns the number of rows of the image. */
uint32_t mr_raster_rows(const struct mr_raster *r);
/* Returns the share of a pixel's time in which the slot ran tasks, 0-1. */
double mr_raster_fill(const struct mr_raster *r, const struct mr_raster_pixel *pixel);
