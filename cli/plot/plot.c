/* The axes of a plot with their ticks, and the plot as text. The curve is drawn as dots. A
 * braille or ASCII character stands for a field of dots, two across and four down. */
#include "cli/plot/plot.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* An axis is logarithmic if the highest value is at least this many times the lowest. */
#define POWERS_FROM 20.0

/* ---- axes ------------------------------------------------------------------------------------ */

void mr_plot_number(double v, char out[16])
{
    double a = fabs(v);
    if (a >= 1e6)
        (void)snprintf(out, 16, "%.3gM", v / 1e6);
    else if (a >= 1e4)
        (void)snprintf(out, 16, "%.3gk", v / 1e3);
    else if (a >= 1e3)
        (void)snprintf(out, 16, "%.0f", v);
    else
        (void)snprintf(out, 16, "%.3g", a < 1e-12 ? 0 : v);
}

/* Returns the distance of ticks: 1, 2 or 5 times a power of ten, about a quarter of `span`. */
static double nice_step(double span)
{
    double base = pow(10, floor(log10(span / 4)));
    double n = span / 4 / base;
    return base * (n < 1.5 ? 1 : n < 3.5 ? 2 : n < 7.5 ? 5 : 10);
}

static void add_tick(struct mr_plot_axis *a, double v)
{
    if (a->ticks_count < MR_PLOT_TICKS_MAX) a->ticks[a->ticks_count++] = v;
}

static void set_even_ticks(struct mr_plot_axis *a)
{
    double step = nice_step(a->high - a->low);
    double slack = step * 1e-9;
    for (double k = ceil((a->low - slack) / step); k * step <= a->high + slack; k++)
        add_tick(a, k * step);
}

/* Sets ticks at 1, 2 and 5 of each decade, or only at 1 if there are many decades. */
static void set_power_ticks(struct mr_plot_axis *a)
{
    static const double steps[] = {1, 2, 5};
    double first = floor(log10(a->low));
    double last = ceil(log10(a->high));
    unsigned each = last - first > 3 ? 1 : 3;
    double every = ceil((last - first) / (MR_PLOT_TICKS_MAX - 1));
    for (double d = first; d <= last; d += fmax(every, 1)) {
        for (unsigned i = 0; i < each; i++) {
            double v = steps[i] * pow(10, d);
            if (v >= a->low * (1 - 1e-9) && v <= a->high * (1 + 1e-9)) add_tick(a, v);
        }
    }
}

void mr_plot_axis_of(const struct mr_plot_line *l, bool of_x, const double *mark,
    bool may_be_powers, struct mr_plot_axis *out)
{
    double low = mark ? *mark : (double)INFINITY;
    double high = mark ? *mark : -(double)INFINITY;
    for (size_t i = 0; i < l->count; i++) {
        double v = of_x ? l->points[i].x : l->points[i].y;
        if (!isfinite(v)) continue;
        low = fmin(low, v);
        high = fmax(high, v);
    }
    if (low > high) {
        low = 0;
        high = 1;
    }
    *out = (struct mr_plot_axis){.low = low, .high = high};
    out->by_powers = may_be_powers && low > 0 && high / low >= POWERS_FROM;
    if (!out->by_powers &&
        /* True if all values of the line are equal. */
        high - low <= 1e-9 * fmax(fabs(high), 1e-9)) {
        double around = fabs(high) > 0 ? fabs(high) * 0.5 : 0.5;
        out->low -= of_x ? 0 : around;
        out->high += around;
    }
    if (out->by_powers)
        set_power_ticks(out);
    else
        set_even_ticks(out);
}

double mr_plot_axis_position(const struct mr_plot_axis *a, double v)
{
    if (!a->by_powers) return (v - a->low) / (a->high - a->low);
    if (!(v > 0)) return 0;
    return (log10(v) - log10(a->low)) / (log10(a->high) - log10(a->low));
}

/* ---- text ------------------------------------------------------------------------------------ */

#define LABEL_WIDTH 8

/* A drawing of dots. Two dots across and four down make one character. */
struct sheet {
    unsigned columns, rows;
    /* For each character: bits of a Unicode braille pattern. */
    uint8_t dots[MR_PLOT_ROWS_MAX][MR_PLOT_COLUMNS_MAX];
    bool mark[MR_PLOT_ROWS_MAX];
};

static void set_dot(struct sheet *s, int x, int y)
{
    static const uint8_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (x < 0 || y < 0 || x >= (int)s->columns * 2 || y >= (int)s->rows * 4) return;
    s->dots[y / 4][x / 2] |= bits[y % 4][x % 2];
}

static void draw_segment(struct sheet *s, const double from[2], const double to[2])
{
    int steps = (int)(fmax(fabs(to[0] - from[0]), fabs(to[1] - from[1]))) + 1;
    for (int i = 0; i <= steps; i++) {
        double t = (double)i / steps;
        set_dot(s, (int)lround(from[0] + (to[0] - from[0]) * t),
            (int)lround(from[1] + (to[1] - from[1]) * t));
    }
}

static void draw_line(struct sheet *s, const struct mr_plot_line *l, const struct mr_plot_axis *x,
    const struct mr_plot_axis *y)
{
    double before[2] = {0};
    bool has_before = false;
    for (size_t i = 0; i < l->count; i++) {
        const struct mr_plot_point *p = &l->points[i];
        double at[2] = {mr_plot_axis_position(x, p->x) * (s->columns * 2 - 1),
            (1 - mr_plot_axis_position(y, p->y)) * (s->rows * 4 - 1)};
        bool is_point = isfinite(p->x) && isfinite(p->y);
        if (is_point) draw_segment(s, has_before ? before : at, at);
        memcpy(before, at, sizeof before);
        has_before = is_point;
    }
}

static unsigned row_of(const struct sheet *s, const struct mr_plot_axis *y, double v)
{
    double row = (1 - mr_plot_axis_position(y, v)) * (s->rows * 4 - 1) / 4;
    return (unsigned)fmin(fmax(row, 0), s->rows - 1);
}

static void write_cell(
    const struct sheet *s, unsigned row, unsigned column, bool ascii, struct mr_buf *out)
{
    unsigned dots = s->dots[row][column];
    bool dash = s->mark[row] && column % 3 != 2;
    if (ascii) {
        mr_buf_add_byte(out, dots ? '*' : dash ? '-' : ' ');
    } else if (dots) { /* U+2800 + dots */
        mr_buf_add_byte(out, 0xe2);
        mr_buf_add_byte(out, (unsigned char)(0xa0 | dots >> 6));
        mr_buf_add_byte(out, (unsigned char)(0x80 | (dots & 0x3f)));
    } else {
        mr_buf_add_text(out, dash ? "╌" : " ");
    }
}

static void write_rows(
    const struct sheet *s, const struct mr_plot_axis *y, bool ascii, struct mr_buf *out)
{
    for (unsigned row = 0; row < s->rows; row++) {
        char label[16] = "";
        for (unsigned i = 0; i < y->ticks_count; i++)
            if (row_of(s, y, y->ticks[i]) == row) mr_plot_number(y->ticks[i], label);
        mr_buf_printf(out, "%*s %s", LABEL_WIDTH, label,
            ascii ? (label[0] ? "+" : "|") : (label[0] ? "┤" : "│"));
        unsigned used = s->columns;
        while (used && !s->dots[row][used - 1] && !s->mark[row])
            used--;
        for (unsigned column = 0; column < used; column++)
            write_cell(s, row, column, ascii, out);
        mr_buf_add_byte(out, '\n');
    }
}

static void write_foot(const struct sheet *s, const struct mr_plot_axis *x, const char *name,
    bool ascii, struct mr_buf *out)
{
    char low[16];
    char high[16];
    mr_plot_number(x->low, low);
    mr_plot_number(x->high, high);
    mr_buf_printf(out, "%*s %s", LABEL_WIDTH, "", ascii ? "+" : "└");
    for (unsigned i = 0; i < s->columns; i++)
        mr_buf_add_text(out, ascii ? "-" : "─");
    int middle = (int)s->columns - (int)strlen(low) - (int)strlen(high);
    int before = (middle - (int)strlen(name)) / 2;
    if (before < 1) {
        before = 1;
        name = "";
    }
    mr_buf_printf(out, "\n%*s  %s%*s%s%*s%s\n", LABEL_WIDTH, "", low, before, "", name,
        MR_MAX(middle - before - (int)strlen(name), 1), "", high);
}

void mr_plot_text(
    const struct mr_plot *p, unsigned columns, unsigned rows, bool ascii, struct mr_buf *out)
{
    struct mr_plot_axis x;
    struct mr_plot_axis y;
    struct sheet s = {.columns = MR_MIN(MR_MAX(columns, 8u), (unsigned)MR_PLOT_COLUMNS_MAX),
        .rows = MR_MIN(MR_MAX(rows, 2u), (unsigned)MR_PLOT_ROWS_MAX)};
    mr_plot_axis_of(&p->left, true, NULL, false, &x);
    mr_plot_axis_of(&p->left, false, p->has_mark ? &p->mark : NULL, true, &y);
    if (p->has_mark) s.mark[row_of(&s, &y, p->mark)] = true;
    draw_line(&s, &p->left, &x, &y);
    mr_buf_printf(out, "%*s  %s\n", LABEL_WIDTH, "", p->title ? p->title : p->left.name);
    write_rows(&s, &y, ascii, out);
    write_foot(&s, &x, p->x_name ? p->x_name : "", ascii, out);
}
