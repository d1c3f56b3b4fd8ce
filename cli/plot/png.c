/* Draws a plot into a buffer of pixels. */
#include "base/alloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/font.h"
#include "store/object/format/png.h"

#include <math.h>
#include <string.h>

#define LETTER 2 /* width and height of one dot of the font, in pixels */
#define ADVANCE (6 * LETTER)
#define HEIGHT (7 * LETTER)

struct colour {
    unsigned char r, g, b;
};

static const struct colour paper = {255, 255, 255};
static const struct colour ink = {60, 60, 60};
static const struct colour grid = {226, 226, 226};
static const struct colour blue = {31, 101, 180};
static const struct colour orange = {217, 111, 14};
static const struct colour red = {190, 40, 40};

struct canvas {
    int width, height;
    int left, right, top, bottom; /* edges of the frame around the curve, in pixels */
    unsigned char *pixels;        /* rows of pixels, each with the bytes r, g, b */
};

static void set_pixel(struct canvas *c, int x, int y, struct colour k, double share)
{
    if (x < 0 || y < 0 || x >= c->width || y >= c->height) return;
    unsigned char *p = c->pixels + ((size_t)y * (size_t)c->width + (size_t)x) * 3;
    p[0] = (unsigned char)lround(p[0] + (k.r - p[0]) * share);
    p[1] = (unsigned char)lround(p[1] + (k.g - p[1]) * share);
    p[2] = (unsigned char)lround(p[2] + (k.b - p[2]) * share);
}

static void fill(struct canvas *c, int x, int y, int w, int h, struct colour k)
{
    for (int j = y; j < y + h; j++)
        for (int i = x; i < x + w; i++)
            set_pixel(c, i, j, k, 1);
}

/* ---- letters --------------------------------------------------------------------------------- */

static int text_width(const char *text)
{
    return (int)strlen(text) * ADVANCE - LETTER;
}

static void draw_text(struct canvas *c, int x, int y, const char *text, struct colour k)
{
    for (; *text; text++, x += ADVANCE) {
        const unsigned char *rows = mr_plot_glyph(*text);
        for (int row = 0; row < 7; row++)
            for (int column = 0; column < 5; column++)
                if (rows[row] & (0x10 >> column))
                    fill(c, x + column * LETTER, y + row * LETTER, LETTER, LETTER, k);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Draws an anti-aliased line, two pixels wide: the farther a pixel is from the line, the less of
 * the colour it gets. */
static void draw_segment(
    struct canvas *c, double ax, double ay, double bx, double by, struct colour k)
{
    double dx = bx - ax;
    double dy = by - ay;
    double length2 = dx * dx + dy * dy;
    int x0 = MR_MAX((int)fmin(ax, bx) - 2, c->left);
    int x1 = MR_MIN((int)fmax(ax, bx) + 2, c->right);
    int y0 = MR_MAX((int)fmin(ay, by) - 2, c->top);
    int y1 = MR_MIN((int)fmax(ay, by) + 2, c->bottom);
    for (int y = y0; y <= y1; y++) {
        for (int x = x0; x <= x1; x++) {
            double t = length2 > 0 ? ((x - ax) * dx + (y - ay) * dy) / length2 : 0;
            t = fmin(fmax(t, 0), 1);
            double away = hypot(x - ax - t * dx, y - ay - t * dy);
            double share = fmin(fmax(1.6 - away, 0), 1);
            if (share > 0) set_pixel(c, x, y, k, share);
        }
    }
}

static double x_of(const struct canvas *c, const struct mr_plot_axis *a, double v)
{
    return c->left + mr_plot_axis_position(a, v) * (c->right - c->left);
}

static double y_of(const struct canvas *c, const struct mr_plot_axis *a, double v)
{
    return c->bottom - mr_plot_axis_position(a, v) * (c->bottom - c->top);
}

static void draw_line(struct canvas *c, const struct mr_plot_line *l, const struct mr_plot_axis *x,
    const struct mr_plot_axis *y, struct colour k)
{
    double before[2] = {0};
    bool has_before = false;
    for (size_t i = 0; i < l->count; i++) {
        const struct mr_plot_point *p = &l->points[i];
        bool is_point = isfinite(p->x) && isfinite(p->y);
        if (!is_point) {
            has_before = false;
            continue;
        }
        double at[2] = {x_of(c, x, p->x), y_of(c, y, p->y)};
        draw_segment(
            c, has_before ? before[0] : at[0], has_before ? before[1] : at[1], at[0], at[1], k);
        memcpy(before, at, sizeof before);
        has_before = true;
    }
}

/* ---- axes ------------------------------------------------------------------------------------ */

static void draw_y_axis(struct canvas *c, const struct mr_plot_axis *a, bool right, struct colour k)
{
    for (unsigned i = 0; i < a->ticks_count; i++) {
        char text[16];
        int y = (int)lround(y_of(c, a, a->ticks[i]));
        mr_plot_number(a->ticks[i], text);
        if (!right) fill(c, c->left, y, c->right - c->left, 1, grid);
        fill(c, right ? c->right : c->left - 5, y, 5, 1, ink);
        draw_text(
            c, right ? c->right + 10 : c->left - 10 - text_width(text), y - HEIGHT / 2, text, k);
    }
}

static void draw_x_axis(struct canvas *c, const struct mr_plot_axis *a, const char *name)
{
    for (unsigned i = 0; i < a->ticks_count; i++) {
        char text[16];
        int x = (int)lround(x_of(c, a, a->ticks[i]));
        mr_plot_number(a->ticks[i], text);
        fill(c, x, c->top, 1, c->bottom - c->top, grid);
        fill(c, x, c->bottom, 1, 5, ink);
        draw_text(c, x - text_width(text) / 2, c->bottom + 10, text, ink);
    }
    draw_text(c, (c->left + c->right - text_width(name)) / 2, c->bottom + 14 + HEIGHT, name, ink);
}

static void draw_frame(struct canvas *c, bool has_right)
{
    fill(c, c->left, c->top, 1, c->bottom - c->top, ink);
    fill(c, c->left, c->bottom, c->right - c->left + 1, 1, ink);
    if (has_right) fill(c, c->right, c->top, 1, c->bottom - c->top, ink);
}

static void draw_mark(struct canvas *c, const struct mr_plot_axis *a, double v)
{
    int y = (int)lround(y_of(c, a, v));
    for (int x = c->left; x < c->right; x += 14)
        fill(c, x, y, MR_MIN(8, c->right - x), 2, red);
}

static void draw(struct canvas *c, const struct mr_plot *p)
{
    struct mr_plot_axis x;
    struct mr_plot_axis left;
    struct mr_plot_axis right;
    const double *mark = p->has_mark ? &p->mark : NULL;
    bool has_right = p->right.count > 0;
    mr_plot_axis_of(&p->left, true, NULL, false, &x);
    mr_plot_axis_of(&p->left, false, mark, true, &left);
    mr_plot_axis_of(&p->right, false, NULL, false, &right);
    draw_x_axis(c, &x, p->x_name ? p->x_name : "");
    draw_y_axis(c, &left, false, blue);
    if (has_right) draw_y_axis(c, &right, true, orange);
    if (mark) draw_mark(c, &left, *mark);
    if (has_right) draw_line(c, &p->right, &x, &right, orange);
    draw_line(c, &p->left, &x, &left, blue);
    draw_frame(c, has_right);
    draw_text(c, c->left, 8, p->left.name ? p->left.name : "", blue);
    if (has_right && p->right.name)
        draw_text(c, c->right - text_width(p->right.name), 8, p->right.name, orange);
    if (p->title) draw_text(c, (c->left + c->right - text_width(p->title)) / 2, 8, p->title, ink);
}

static int write_to(void *ctx, const void *p, size_t n)
{
    mr_buf_add(ctx, p, n);
    return mr_buf_status(ctx);
}

int mr_plot_png(const struct mr_plot *p, unsigned width, unsigned height, struct mr_buf *out,
    struct mr_error *e)
{
    if (width < 240 || height < 160 || width > MR_PLOT_SIDE_MAX || height > MR_PLOT_SIDE_MAX)
        return mr_fail(e, MR_EINVAL, "a plot of %u by %u pixels: expected 240 by 160 to %d by %d",
            width, height, MR_PLOT_SIDE_MAX, MR_PLOT_SIDE_MAX);
    size_t bytes = (size_t)width * height * 3;
    MR_AUTO(mr_free_ptr) unsigned char *pixels = mr_alloc(bytes);
    struct canvas c = {.width = (int)width,
        .height = (int)height,
        .left = 80,
        .right = (int)width - 80,
        .top = 32,
        .bottom = (int)height - 50,
        .pixels = pixels};
    memset(pixels, paper.r, bytes);
    draw(&c, p);
    struct mr_tensor t;
    mr_tensor_init(&t, MR_DTYPE_U8, 3, (const uint64_t[]){height, width, 3}, pixels);
    return mr_png_export(&t, NULL, (struct mr_sink){.write = write_to, .ctx = out}, e);
}
