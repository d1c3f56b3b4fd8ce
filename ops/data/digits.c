/* Images of digits for learning: digits.load reads images from a file, digits.draw draws synthetic
 * images. digits.load also draws images, but only if the job names no file: a file that is named is
 * read, or its error is reported. Drawn data is marked (mr_op_services.mark_drawn). digits.source
 * returns, as a text, from where digits.load takes its images. */
#include "ops/data/data.h"

#include "ops/array/array.h"
#include "ops/file.h"
#include "ops/kernel/random.h"

#include <math.h>
#include <stdio.h>

#define SIDE 28
#define POINTS_MAX 14

/* Each digit as strokes through points of a 10 × 10 grid; y points downwards. -1 lifts the pen, -2
 * ends the digit. */
static const signed char strokes[10][2 * POINTS_MAX] = {
    {5, 1, 3, 2, 2, 5, 3, 8, 5, 9, 7, 8, 8, 5, 7, 2, 5, 1, -2},
    {3, 3, 5, 1, 5, 9, -2},
    {2, 3, 4, 1, 7, 2, 7, 4, 2, 9, 8, 9, -2},
    {2, 2, 5, 1, 7, 2, 7, 4, 5, 5, 7, 6, 7, 8, 5, 9, 2, 8, -2},
    {6, 9, 6, 1, 2, 6, 8, 6, -2},
    {7, 1, 3, 1, 3, 4, 6, 4, 8, 6, 7, 8, 5, 9, 2, 8, -2},
    {7, 1, 4, 3, 2, 6, 3, 8, 5, 9, 7, 8, 7, 6, 5, 5, 3, 6, -2},
    {2, 1, 8, 1, 4, 9, -1, -1, 3, 5, 7, 5, -2},
    {5, 5, 3, 3, 5, 1, 7, 3, 5, 5, 3, 7, 5, 9, 7, 7, 5, 5, -2},
    {7, 4, 5, 5, 3, 4, 3, 2, 5, 1, 7, 2, 7, 5, 5, 9, -2},
};

struct pen {
    float x[POINTS_MAX];
    float y[POINTS_MAX];
    /* By point: true if no line leads from the previous point to this one. */
    bool lifted[POINTS_MAX];
    unsigned count;
    float width;
};

static float draw_between(struct mr_stream *s, float low, float high)
{
    return low + (high - low) * mr_stream_f32(s);
}

/* Places the points of a digit with random size, slant, rotation and position, and a small random
 * shift of each point. */
static void place_pen(struct mr_stream *s, unsigned digit, struct pen *pen)
{
    float size_x = draw_between(s, 1.7f, 2.3f);
    float size_y = draw_between(s, 1.9f, 2.4f);
    float slant = draw_between(s, -0.25f, 0.35f);
    float turn = draw_between(s, -0.18f, 0.18f);
    float at_x = SIDE / 2.0f + draw_between(s, -1.5f, 1.5f);
    float at_y = SIDE / 2.0f + draw_between(s, -1.5f, 1.5f);
    pen->width = draw_between(s, 1.0f, 1.8f);
    pen->count = 0;
    bool lifted = true;
    for (const signed char *p = strokes[digit]; *p != -2; p += 2) {
        if (*p == -1) {
            lifted = true;
            continue;
        }
        float x = ((float)p[0] - 5 + draw_between(s, -0.35f, 0.35f)) * size_x;
        float y = ((float)p[1] - 5 + draw_between(s, -0.35f, 0.35f)) * size_y;
        x -= slant * y;
        pen->x[pen->count] = at_x + x - turn * y;
        pen->y[pen->count] = at_y + y + turn * x;
        pen->lifted[pen->count++] = lifted;
        lifted = false;
    }
}

/* Returns the squared distance of a pixel from one line segment. */
static float distance2(const struct pen *pen, unsigned i, float x, float y)
{
    float ax = pen->x[i - 1];
    float ay = pen->y[i - 1];
    float dx = pen->x[i] - ax;
    float dy = pen->y[i] - ay;
    float length2 = dx * dx + dy * dy;
    float along = length2 > 0 ? ((x - ax) * dx + (y - ay) * dy) / length2 : 0;
    along = along < 0 ? 0 : along > 1 ? 1 : along;
    float ex = x - ax - along * dx;
    float ey = y - ay - along * dy;
    return ex * ex + ey * ey;
}

static void draw_digit(const struct pen *pen, unsigned char *out)
{
    for (unsigned y = 0; y < SIDE; y++) {
        for (unsigned x = 0; x < SIDE; x++) {
            float nearest = 1e9f;
            for (unsigned i = 1; i < pen->count; i++) {
                if (pen->lifted[i]) continue;
                float d = distance2(pen, i, (float)x + 0.5f, (float)y + 0.5f);
                nearest = d < nearest ? d : nearest;
            }
            /* The edge is antialiased over one pixel. */
            float ink = pen->width + 0.5f - sqrtf(nearest);
            ink = ink < 0 ? 0 : ink > 1 ? 1 : ink;
            out[y * SIDE + x] = (unsigned char)(ink * 255 + 0.5f);
        }
    }
}

/* The arguments "count", "seed", "start" and "what" of digits.draw and digits.load, and the
 * argument "rows" of digits.load. */
struct wish {
    int64_t count;
    int64_t seed;
    int64_t start;
    bool labels;
    bool rows;
};

static int draw_digits(struct mr_op_call *call, const struct wish *w)
{
    uint64_t shape[3] = {(uint64_t)w->count, SIDE, SIDE};
    unsigned ndim = w->labels ? 1 : w->rows ? 2 : 3;
    if (ndim == 2) shape[1] = (uint64_t)SIDE * SIDE;
    unsigned char *out = call->does->return_tensor(call, MR_DTYPE_U8, ndim, shape);
    if (!out) return MR_ELIMIT;
    call->does->mark_drawn(call);
    /* Each digit has its own stream of random numbers, so any range can be drawn separately. */
    for (int64_t i = 0; i < w->count; i++) {
        struct mr_stream s;
        mr_stream_init(&s, MR_GENERATOR_PCG64, (uint64_t)w->seed, (uint64_t)(w->start + i));
        unsigned digit = (unsigned)mr_stream_upto(&s, 9);
        if (w->labels) {
            out[i] = (unsigned char)digit;
            continue;
        }
        struct pen pen;
        place_pen(&s, digit, &pen);
        draw_digit(&pen, out + (uint64_t)i * SIDE * SIDE);
        if (i % 256 == 0 && call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

static int read_what(struct mr_op_call *call, const struct mr_arg *arg, bool *labels)
{
    *labels = mr_str_eq(arg->bytes, MR_STR("labels"));
    if (*labels || mr_str_eq(arg->bytes, MR_STR("images"))) return MR_OK;
    return call->does->fail(
        call, MR_EINVAL, "argument \"what\": expected \"images\" or \"labels\"");
}

static int read_wish(struct mr_op_call *call, const struct mr_arg *count, const struct mr_arg *seed,
    const struct mr_arg *start, struct wish *w)
{
    int err = mr_arg_int(call, count, "count", 0, 1 << 30, &w->count);
    if (!err) err = mr_arg_int(call, seed, "seed", 0, INT64_MAX, &w->seed);
    if (!err) err = mr_arg_int(call, start, "start", 0, INT64_MAX / 2, &w->start);
    return err;
}

static int run_draw(struct mr_op_call *call)
{
    struct wish w = {0};
    const struct mr_arg *args = call->args;
    int err = read_wish(call, &args[0], &args[1], &args[2], &w);
    if (!err) err = read_what(call, &args[3], &w.labels);
    return err ? err : draw_digits(call, &w);
}

/* ---- digits.load, digits.source ---- */

#define PATH_BYTES_MAX 4096

/* Reads the argument "path": a path, or [directory, name]. If the argument or the directory is
 * null, `*path` stays empty: no data was given. */
static int read_path(struct mr_op_call *call, char text[PATH_BYTES_MAX], struct mr_str *path)
{
    const struct mr_arg *a = &call->args[0];
    *path = (struct mr_str){0};
    if (a->type == MR_ARG_NIL) return MR_OK;
    if (a->type == MR_ARG_TEXT && a->bytes.n) {
        *path = a->bytes;
        return MR_OK;
    }
    bool is_pair = a->type == MR_ARG_LIST && a->count == 2 && a->items[1].type == MR_ARG_TEXT;
    if (is_pair && a->items[0].type == MR_ARG_NIL) return MR_OK;
    if (!is_pair || a->items[0].type != MR_ARG_TEXT || !a->items[0].bytes.n)
        return call->does->fail(call, MR_EINVAL,
            "argument \"path\": expected a path, or [directory, name]; null as either draws");
    int n = snprintf(text, PATH_BYTES_MAX, "%.*s/%.*s", MR_STR_ARG(a->items[0].bytes),
        MR_STR_ARG(a->items[1].bytes));
    if (n >= PATH_BYTES_MAX) return call->does->fail(call, MR_ELIMIT, "a path of %d bytes", n);
    *path = mr_str_of(text, (size_t)n);
    return MR_OK;
}

static int run_load(struct mr_op_call *call)
{
    char text[PATH_BYTES_MAX];
    struct mr_str path;
    struct mr_op_file f = {.fd = -1};
    struct wish w = {0};
    const struct mr_arg *args = call->args;
    int err = read_wish(call, &args[1], &args[2], &args[4], &w);
    if (!err) err = read_what(call, &args[3], &w.labels);
    if (!err) err = read_path(call, text, &path);
    w.rows = args[5].boolean;
    if (err) return err;
    if (!path.n) return draw_digits(call, &w);
    err = mr_op_file_open(call, path, &f);
    if (!err) err = mr_array_read_idx(call, &f, w.rows);
    mr_op_file_close(&f);
    return err;
}

static int run_source(struct mr_op_call *call)
{
    char text[PATH_BYTES_MAX], words[PATH_BYTES_MAX + 64];
    struct mr_str path;
    struct mr_op_file f = {.fd = -1};
    int64_t seed = 0;
    int err = mr_arg_int(call, &call->args[1], "seed", 0, INT64_MAX, &seed);
    if (!err) err = read_path(call, text, &path);
    if (!err && path.n) err = mr_op_file_open(call, path, &f);
    if (err) return err;
    mr_op_file_close(&f);
    int n = path.n ? snprintf(words, sizeof words, "read from %.*s", MR_STR_ARG(path))
                   : snprintf(words, sizeof words, "drawn with seed %lld: no data was given",
                         (long long)seed);
    return call->does->return_text(
        call, mr_str_of(words, (size_t)MR_MIN(n, (int)sizeof words - 1)));
}

#define D MR_OP_DETERMINISTIC
#define SEED_PARAM                                                                                 \
    {                                                                                              \
        "seed", MR_TAKES_INT, "0", "The same seed draws the same digits."                          \
    }
#define PATH_PARAM                                                                                 \
    {                                                                                              \
        "path", MR_TAKES_NIL | MR_TAKES_TEXT | MR_TAKES_LIST, NULL,                                \
            "An IDX file of images or labels, plain or gzipped: a path, or [directory, name]. If " \
            "either is null, no file is given, and synthetic digits are drawn."                    \
    }

#define START_PARAM                                                                                \
    {                                                                                              \
        "start", MR_TAKES_INT, "0",                                                                \
            "Number of the first digit: ranges with one seed fit together."                        \
    }
#define WHAT_PARAM                                                                                 \
    {                                                                                              \
        "what", MR_TAKES_TEXT, "\"images\"",                                                       \
            "What to draw: images (u8 [count, 28, 28]) or labels (u8 [count])."                    \
    }

static const struct mr_op_param drawn[] = {
    {"count", MR_TAKES_INT, NULL, "Number of digits."},
    SEED_PARAM,
    START_PARAM,
    WHAT_PARAM,
};
static const struct mr_op_param loaded[] = {
    PATH_PARAM,
    {"count", MR_TAKES_INT, "60000", "Number of digits to draw if no file is given."},
    SEED_PARAM,
    WHAT_PARAM,
    START_PARAM,
    {"rows", MR_TAKES_BOOL, "false",
        "Each image as one row: [count, 784] instead of [count, 28, 28]."},
};
static const struct mr_op_param asked[] = {PATH_PARAM, SEED_PARAM};

const struct mr_op_desc *mr_digits_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("digits.draw", D, drawn, 1000000, run_draw, "u8 tensor",
            "Draws synthetic handwritten digits of 28 × 28 pixels."),
        MR_OP_ROW("digits.load", MR_OP_MAY_BLOCK, loaded, 1000000, run_load, "u8 tensor",
            "Reads images or labels of digits from a file; without a file, draws synthetic ones "
            "and marks them as drawn."),
        MR_OP_ROW("digits.source", MR_OP_MAY_BLOCK, asked, 100000, run_source, "text",
            "Returns, as a text, the source from which digits.load takes images."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
