/* Small plots of a curve: as text of braille dots (or ASCII), and as a PNG picture. Pure: points
 * in, bytes out. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct mr_plot_point {
    double x;
    double y; /* not finite: the line has a gap here */
};

struct mr_plot_line {
    const char *name;
    const struct mr_plot_point *points; /* x does not fall */
    size_t count;
};

struct mr_plot {
    const char *title;
    const char *x_name;
    struct mr_plot_line left;  /* scaled by the left axis: by powers of ten when it spans many */
    struct mr_plot_line right; /* by the right axis; pictures only */
    bool has_mark;             /* a dashed line across, on the left axis */
    double mark;
};

/* ---- axes ---- */

#define MR_PLOT_TICKS_MAX 12

struct mr_plot_axis {
    double low;
    double high; /* above low */
    bool by_powers;
    double ticks[MR_PLOT_TICKS_MAX];
    unsigned ticks_count;
};

/* An axis that holds all y (or x) of the line and, if given, `mark`; 0 to 1 when there is nothing.
 */
void mr_plot_axis_of(const struct mr_plot_line *l, bool of_x, const double *mark,
    bool may_be_powers, struct mr_plot_axis *out);
double mr_plot_axis_place(const struct mr_plot_axis *a, double v); /* 0 at low, 1 at high */
void mr_plot_number(double v, char out[16]);                       /* "0.05", "1.2k", "3M" */

/* ---- output ---- */

#define MR_PLOT_COLUMNS_MAX 200
#define MR_PLOT_ROWS_MAX 60

/* `columns` and `rows` of characters for the curve itself; labels come beside it. */
void mr_plot_text(
    const struct mr_plot *p, unsigned columns, unsigned rows, bool ascii, struct mr_buf *out);

#define MR_PLOT_SIDE_MAX 4096

int mr_plot_png(const struct mr_plot *p, unsigned width, unsigned height, struct mr_buf *out,
    struct mr_error *e);
