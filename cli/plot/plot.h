/* Small plots of a curve: as text of braille or ASCII characters, and as a PNG picture. No I/O. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct mr_plot_point {
    double x;
    double y; /* not finite: the line has a gap at this point */
};

struct mr_plot_line {
    const char *name;
    const struct mr_plot_point *points; /* ascending x */
    size_t count;
};

struct mr_plot {
    const char *title;
    const char *x_name;
    /* The line on the left axis, which is logarithmic for a wide range. */
    struct mr_plot_line left;
    struct mr_plot_line right; /* the line on the right axis; drawn only in PNG */
    bool has_mark; /* true: `mark` is drawn as a dashed horizontal line on the left axis */
    double mark;
};

/* ---- axes ---- */

#define MR_PLOT_TICKS_MAX 12

struct mr_plot_axis {
    double low;
    double high;    /* upper end of the axis, above low */
    bool by_powers; /* true: the axis is logarithmic */
    double ticks[MR_PLOT_TICKS_MAX];
    unsigned ticks_count;
};

/* Computes the axis for all y (with `of_x`: all x) of the line and for `mark` (NULL: none). With
 * `may_be_powers` the axis of a wide range is logarithmic. If the line has no finite number and
 * `mark` is NULL, the axis is 0 to 1. */
void mr_plot_axis_of(const struct mr_plot_line *l, bool of_x, const double *mark,
    bool may_be_powers, struct mr_plot_axis *out);
/* Returns the place of `v` on the axis: 0 at `low`, 1 at `high`. */
double mr_plot_axis_position(const struct mr_plot_axis *a, double v);
void mr_plot_number(double v, char out[16]); /* "0.05", "1.2k", "3M" */

/* ---- output ---- */

#define MR_PLOT_COLUMNS_MAX 200
#define MR_PLOT_ROWS_MAX 60

/* Appends the plot as text. The curve has `columns` × `rows` characters; the labels need more
 * room. */
void mr_plot_text(
    const struct mr_plot *p, unsigned columns, unsigned rows, bool ascii, struct mr_buf *out);

#define MR_PLOT_SIDE_MAX 4096

int mr_plot_png(const struct mr_plot *p, unsigned width, unsigned height, struct mr_buf *out,
    struct mr_error *e);
