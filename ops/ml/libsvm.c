/* ml.libsvm: reads sparse rows in LIBSVM's format, "label index:value index:value … # comment", as
 * a dense matrix and its labels. Indices count from 1 and ascend. The first pass over the text
 * finds the shape and reports errors; the second pass fills the matrix. */
#include "ops/ml/ml.h"

#include "ops/file.h"

#include <math.h>
#include <stdlib.h>

#define TEXT_BYTES_MAX ((uint64_t)4 << 30)
#define NUMBER_BYTES_MAX 60
#define FEATURES_MAX 16777216

struct cursor {
    const char *p;
    const char *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct cursor *c)
{
    while (c->p < c->end && is_blank(*c->p))
        c->p++;
}

/* Finds the next line, without its comment. False: there is no further line. */
static bool next_line(struct cursor *text, struct cursor *line)
{
    if (text->p == text->end) return false;
    const char *stop = memchr(text->p, '\n', (size_t)(text->end - text->p));
    if (!stop) stop = text->end;
    line->p = text->p;
    const char *comment = memchr(text->p, '#', (size_t)(stop - text->p));
    line->end = comment ? comment : stop;
    text->p = stop < text->end ? stop + 1 : stop;
    skip_blanks(line);
    return true;
}

/* Reads a finite number that ends at a blank, at `until` or at the end of the line. */
static bool read_number(struct cursor *line, char until, double *out)
{
    char copy[NUMBER_BYTES_MAX + 1];
    size_t n = 0;
    while (line->p + n < line->end && !is_blank(line->p[n]) && line->p[n] != until)
        n++;
    if (!n || n > NUMBER_BYTES_MAX) return false;
    memcpy(copy, line->p, n);
    copy[n] = 0;
    if (copy[0] == 'n' || copy[0] == 'N' || strpbrk(copy, "xXpP")) return false;
    char *end = NULL;
    *out = strtod(copy, &end);
    line->p += n;
    return end == copy + n && isfinite(*out);
}

/* Reads index:value. `*index` is 0 at the end of the line. False: the line has something else
 * there. */
static bool read_pair(struct cursor *line, uint64_t *index, double *value)
{
    skip_blanks(line);
    *index = 0;
    if (line->p == line->end) return true;
    double at = 0;
    if (!read_number(line, ':', &at) || line->p == line->end || *line->p != ':') return false;
    line->p++;
    if (at < 1 || at > FEATURES_MAX || at != floor(at)) return false;
    *index = (uint64_t)at;
    return read_number(line, ' ', value);
}

struct size {
    uint64_t rows;
    uint64_t features;
};

static int bad_line(struct mr_op_call *call, uint64_t number, const char *what)
{
    return call->does->fail(call, MR_EFORMAT, "line %llu: %s", (unsigned long long)number, what);
}

static int measure_line(
    struct mr_op_call *call, struct cursor *line, uint64_t number, struct size *s)
{
    uint64_t last = 0;
    uint64_t index = 0;
    double value = 0;
    if (!read_number(line, ' ', &value)) return bad_line(call, number, "expected a label first");
    do {
        if (!read_pair(line, &index, &value))
            return bad_line(call, number,
                "expected index:value, a whole number from 1 to 16777216 and a finite number");
        if (index && index <= last) return bad_line(call, number, "indices must ascend");
        last = MR_MAX(index, last);
    } while (index);
    s->rows++;
    s->features = MR_MAX(s->features, last);
    return MR_OK;
}

static int measure(struct mr_op_call *call, struct cursor text, struct size *s)
{
    struct cursor line;
    for (uint64_t number = 1; next_line(&text, &line); number++) {
        if (line.p == line.end) continue;
        int err = measure_line(call, &line, number, s);
        if (err) return err;
        if (number % 4096 == 0 && call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return s->rows ? MR_OK : call->does->fail(call, MR_EFORMAT, "no rows");
}

/* Fills `x`, which is zeroed, and `y` from a text that the first pass found well-formed. */
static void fill(struct cursor text, uint64_t features, bool wide, void *x, double *y)
{
    struct cursor line;
    for (uint64_t row = 0; next_line(&text, &line);) {
        uint64_t index = 0;
        double value = 0;
        if (line.p == line.end) continue;
        (void)read_number(&line, ' ', &y[row]);
        while (read_pair(&line, &index, &value) && index) {
            if (wide)
                ((double *)x)[row * features + index - 1] = value;
            else
                ((float *)x)[row * features + index - 1] = (float)value;
        }
        row++;
    }
}

static int answer(struct mr_op_call *call, struct mr_str text, enum mr_dtype dtype)
{
    const struct mr_arg *wanted = &call->args[1];
    struct cursor c = {text.p, text.p + text.n};
    struct size s = {0};
    int64_t features = 0;
    int err = measure(call, c, &s);
    if (!err && wanted->type != MR_ARG_NIL)
        err = mr_arg_int(call, wanted, "features", (int64_t)s.features, FEATURES_MAX, &features);
    if (err) return err;
    uint64_t shape[2] = {s.rows, features ? (uint64_t)features : s.features};
    void *x = NULL;
    void *y = NULL;
    struct mr_arg items[2];
    /* `x` is zeroed, like all scratch memory */
    err = mr_ml_tensor(call, dtype, 2, shape, &x, &items[0]);
    if (!err) err = mr_ml_tensor(call, MR_DTYPE_F64, 1, shape, &y, &items[1]);
    if (err) return err;
    fill(c, shape[1], dtype == MR_DTYPE_F64, x, y);
    items[0].name = MR_STR("x");
    items[1].name = MR_STR("y");
    struct mr_arg dict = mr_ml_dict(items, 2);
    return call->does->return_arg(call, &dict);
}

static int run_libsvm(struct mr_op_call *call)
{
    const struct mr_arg *source = &call->args[0];
    enum mr_dtype dtype = MR_DTYPE_NONE;
    int err = mr_array_dtype(call, &call->args[2], "dtype", &dtype);
    if (err) return err;
    if (dtype != MR_DTYPE_F32 && dtype != MR_DTYPE_F64)
        return call->does->fail(call, MR_EINVAL, "argument \"dtype\": expected f32 or f64");
    if (source->type == MR_ARG_BYTES) return answer(call, source->bytes, dtype);
    struct mr_op_file f;
    struct mr_str text = {0};
    err = mr_op_file_open(call, source->bytes, &f);
    if (err) return err;
    if (f.bytes > TEXT_BYTES_MAX)
        err = call->does->fail(call, MR_ELIMIT, "\"%.*s\": %llu bytes, at most %llu are allowed",
            MR_STR_ARG(f.path), (unsigned long long)f.bytes, (unsigned long long)TEXT_BYTES_MAX);
    if (!err) err = mr_op_file_take(call, &f, 0, f.bytes, &text);
    mr_op_file_close(&f);
    return err ? err : answer(call, text, dtype);
}

static const struct mr_op_param read_params[] = {
    {"source", MR_TAKES_TEXT | MR_TAKES_BYTES, NULL,
        "The path of a file below a data root, or the bytes of the file."},
    {"features", MR_TAKES_INT | MR_TAKES_NIL, "null",
        "Number of columns of the matrix; null: the largest index in the file."},
    {"dtype", MR_TAKES_TEXT, "\"f32\"", "Type of the matrix: f32 or f64."},
};

const struct mr_op_desc *mr_ml_libsvm_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("ml.libsvm", MR_OP_MAY_BLOCK, read_params, 1000000, run_libsvm,
            "dict of x [rows, features] and y [rows]",
            "Reads rows in LIBSVM's text format, which counts columns from 1, as a dense matrix."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
