/* What operators for learning share (ml.h): converts labels to class numbers, reads matrices, and
 * makes parts of results. */
#include "ops/ml/ml.h"

#include "base/assert.h"
#include "ops/arg.h"
#include "store/object/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- labels ---- */

enum label_kind { LABEL_INT, LABEL_FLOAT, LABEL_TEXT };

struct label {
    union {
        int64_t i;
        double f;
        struct mr_str s;
    };
};

struct labels {
    enum label_kind kind;
    uint64_t n;
    const struct mr_arg *texts; /* for LABEL_TEXT */
    /* Labels of the other kinds; after as_kind they are contiguous i64 or f64. */
    struct mr_tensor t;
};

static bool is_texts(const struct mr_arg *y)
{
    return y->type == MR_ARG_LIST && y->count && y->items[0].type == MR_ARG_TEXT;
}

/* Finds the kind of the labels, without copying them. */
static int open_labels(
    struct mr_op_call *call, const struct mr_arg *y, const char *name, struct labels *out)
{
    *out = (struct labels){.kind = LABEL_TEXT};
    if (is_texts(y)) {
        for (uint32_t i = 0; i < y->count; i++)
            if (y->items[i].type != MR_ARG_TEXT)
                return call->does->fail(call, MR_EINVAL,
                    "argument \"%s\": label %u is %s, the first one text", name, i,
                    mr_arg_type_name(y->items[i].type));
        out->texts = y->items;
        out->n = y->count;
        return MR_OK;
    }
    int err = mr_array_tensor(call, y, name, &out->t);
    if (err) return err;
    if (out->t.ndim == 2 && out->t.shape[1] == 1) out->t.ndim = 1;
    if (out->t.ndim != 1)
        return call->does->fail(call, MR_EINVAL,
            "argument \"%s\": expected one label a row (an axis), got %u axes", name, out->t.ndim);
    out->n = out->t.shape[0];
    out->kind = mr_dtype_is_float(out->t.dtype) ? LABEL_FLOAT : LABEL_INT;
    return MR_OK;
}

/* Converts the labels to contiguous i64 or f64. */
static int as_kind(struct mr_op_call *call, struct labels *l, enum label_kind kind)
{
    l->kind = kind;
    if (kind == LABEL_TEXT) return MR_OK;
    enum mr_dtype t = kind == LABEL_INT ? MR_DTYPE_I64 : MR_DTYPE_F64;
    void *copy = call->does->scratch(call, MR_MAX(l->n, 1u) * 8);
    if (!copy) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, t, 1, &l->n, copy);
    int err = mr_array_cast(call, &l->t, &to);
    l->t = to;
    return err;
}

static struct label label_at(const struct labels *l, uint64_t i)
{
    struct label v = {0};
    if (l->kind == LABEL_TEXT)
        v.s = l->texts[i].bytes;
    else if (l->kind == LABEL_INT)
        v.i = ((const int64_t *)l->t.data)[i];
    else
        v.f = ((const double *)l->t.data)[i];
    return v;
}

static int compare(enum label_kind kind, const struct label *a, const struct label *b)
{
    if (kind == LABEL_TEXT) return mr_str_cmp(a->s, b->s);
    if (kind == LABEL_INT) return a->i < b->i ? -1 : a->i > b->i;
    return a->f < b->f ? -1 : a->f > b->f;
}

struct set { /* a set of labels, in ascending order */
    enum label_kind kind;
    struct label *items;
    uint32_t count;
    uint32_t room;
};

/* Returns the index of `v`, or the index at which it would be inserted. */
static uint32_t place_of(const struct set *s, const struct label *v)
{
    uint32_t low = 0;
    uint32_t high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(s->kind, &s->items[middle], v) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow(struct mr_op_call *call, struct set *s)
{
    uint32_t room = s->room ? 4 * s->room : 16;
    struct label *items = call->does->scratch(call, room * sizeof *items);
    if (!items) return MR_ELIMIT;
    if (s->count) memcpy(items, s->items, s->count * sizeof *items);
    s->items = items;
    s->room = room;
    return MR_OK;
}

static int add_all(struct mr_op_call *call, struct set *s, const struct labels *l, const char *name)
{
    for (uint64_t i = 0; i < l->n; i++) {
        struct label v = label_at(l, i);
        if (l->kind == LABEL_FLOAT && isnan(v.f))
            return call->does->fail(
                call, MR_EINVAL, "argument \"%s\": label %llu is NaN", name, (unsigned long long)i);
        uint32_t at = place_of(s, &v);
        if (at < s->count && compare(s->kind, &s->items[at], &v) == 0) continue;
        if (s->count == MR_CLASSES_MAX)
            return call->does->fail(call, MR_ELIMIT,
                "argument \"%s\": more than %d classes; are these labels?", name, MR_CLASSES_MAX);
        if (s->count == s->room) {
            int err = grow(call, s);
            if (err) return err;
        }
        memmove(s->items + at + 1, s->items + at, (s->count - at) * sizeof *s->items);
        s->items[at] = v;
        s->count++;
    }
    return MR_OK;
}

/* Sets the classes in `out`, as a tensor or as texts. */
static int publish(struct mr_op_call *call, const struct set *s, struct mr_classes *out)
{
    void *values = call->does->scratch(call, MR_MAX(s->count, 1u) * sizeof(struct mr_str));
    if (!values) return MR_ELIMIT;
    out->count = s->count;
    uint64_t n = s->count;
    for (uint32_t i = 0; i < s->count; i++) {
        /* The member `i` of the item of a float label has the bits of the double. */
        if (s->kind == LABEL_TEXT)
            ((struct mr_str *)values)[i] = s->items[i].s;
        else
            ((int64_t *)values)[i] = s->items[i].i;
    }
    if (s->kind == LABEL_TEXT)
        out->texts = values;
    else
        mr_tensor_init(
            &out->values, s->kind == LABEL_INT ? MR_DTYPE_I64 : MR_DTYPE_F64, 1, &n, values);
    return MR_OK;
}

static int number_rows(
    struct mr_op_call *call, const struct set *s, const struct labels *l, struct mr_classes *out)
{
    out->rows = l->n;
    out->of = call->does->scratch(call, MR_MAX(l->n, 1u) * sizeof *out->of);
    if (!out->of) return MR_ELIMIT;
    for (uint64_t i = 0; i < l->n; i++) {
        struct label v = label_at(l, i);
        out->of[i] = place_of(s, &v);
    }
    return MR_OK;
}

int mr_classes_of_all(struct mr_op_call *call, const struct mr_arg *const *ys,
    const char *const *names, uint32_t count, struct mr_classes *outs)
{
    struct labels l[4];
    mr_assert(count && count <= MR_ARRAY_LEN(l));
    struct set s = {.kind = LABEL_INT};
    for (uint32_t k = 0; k < count; k++) {
        int err = open_labels(call, ys[k], names[k], &l[k]);
        if (err) return err;
        if (k && (l[k].kind == LABEL_TEXT) != (s.kind == LABEL_TEXT) && l[k].n)
            return call->does->fail(call, MR_EINVAL,
                "argument \"%s\": labels of \"%s\" and \"%s\" are not both texts or both numbers",
                names[k], names[0], names[k]);
        s.kind = MR_MAX(s.kind, l[k].kind);
    }
    for (uint32_t k = 0; k < count; k++) {
        int err = as_kind(call, &l[k], s.kind);
        if (!err) err = add_all(call, &s, &l[k], names[k]);
        if (err) return err;
    }
    for (uint32_t k = 0; k < count; k++) {
        outs[k] = (struct mr_classes){0};
        int err = publish(call, &s, &outs[k]);
        if (!err) err = number_rows(call, &s, &l[k], &outs[k]);
        if (err) return err;
    }
    return MR_OK;
}

int mr_classes_of(
    struct mr_op_call *call, const struct mr_arg *y, const char *name, struct mr_classes *out)
{
    return mr_classes_of_all(call, &y, &name, 1, out);
}

/* Writes the shortest decimal digits that read back as `v`, in Python's form. */
static void float_text(double v, char *out, size_t n)
{
    if (v == floor(v) && fabs(v) < 1e16) {
        (void)snprintf(out, n, "%.1f", v);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(out, n, "%.*g", digits, v);
        if (strtod(out, NULL) == v) break;
    }
}

const char *mr_class_text(struct mr_op_call *call, const struct mr_classes *c, uint32_t i)
{
    size_t room = c->texts ? c->texts[i].n + 1 : 40;
    char *out = call->does->scratch(call, room);
    if (!out) return NULL;
    if (c->texts) /* the scratch memory is zeroed, so a NUL follows */
        memcpy(out, c->texts[i].p, c->texts[i].n);
    else if (c->values.dtype == MR_DTYPE_I64)
        (void)snprintf(out, room, "%lld", (long long)((const int64_t *)c->values.data)[i]);
    else
        float_text(((const double *)c->values.data)[i], out, room);
    return out;
}

/* ---- rows ---- */

int mr_ml_matrix(struct mr_op_call *call, const struct mr_arg *x, const char *name,
    const double **out, uint64_t *rows, uint64_t *columns)
{
    struct mr_tensor t;
    int err = mr_array_tensor(call, x, name, &t);
    if (err) return err;
    if (t.ndim < 1 || t.ndim > 2)
        return call->does->fail(call, MR_EINVAL,
            "argument \"%s\": expected rows and columns (2 axes), got %u axes", name, t.ndim);
    *rows = t.shape[0];
    *columns = t.ndim == 2 ? t.shape[1] : 1;
    if (t.dtype == MR_DTYPE_F64 && mr_tensor_is_contiguous(&t)) {
        *out = t.data;
        return MR_OK;
    }
    double *copy = call->does->scratch(call, MR_MAX(mr_tensor_elements(&t), 1u) * sizeof *copy);
    if (!copy) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, MR_DTYPE_F64, t.ndim, t.shape, copy);
    *out = copy;
    return mr_array_cast(call, &t, &to);
}

/* ---- results ---- */

struct mr_arg mr_ml_int(int64_t v)
{
    return (struct mr_arg){.type = MR_ARG_INT, .input = MR_ARG_NO_INPUT, .i = v};
}

struct mr_arg mr_ml_float(double v)
{
    return (struct mr_arg){.type = MR_ARG_FLOAT, .input = MR_ARG_NO_INPUT, .f = v};
}

struct mr_arg mr_ml_text(const char *text)
{
    return (struct mr_arg){.type = MR_ARG_TEXT, .input = MR_ARG_NO_INPUT, .bytes = mr_str(text)};
}

int mr_ml_tensor(struct mr_op_call *call, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    void **data, struct mr_arg *out)
{
    uint64_t bytes = mr_tensor_bytes(dtype, ndim, shape);
    void *extent = bytes ? call->does->scratch(call, bytes) : NULL;
    *data = NULL;
    if (!extent) return call->does->fail(call, MR_ELIMIT, "the result is too large");
    *data = mr_tensor_build(extent, dtype, ndim, shape);
    *out = (struct mr_arg){.type = MR_ARG_TENSOR,
        .input = MR_ARG_NO_INPUT,
        .extent = mr_str_of(extent, (size_t)bytes)};
    return MR_OK;
}

struct mr_arg mr_ml_named(const char *name, struct mr_arg v)
{
    v.name = mr_str(name);
    return v;
}

static struct mr_arg many(enum mr_arg_type type, const struct mr_arg *items, uint32_t count)
{
    return (struct mr_arg){.type = type, .input = MR_ARG_NO_INPUT, .items = items, .count = count};
}

struct mr_arg mr_ml_dict(const struct mr_arg *items, uint32_t count)
{
    return many(MR_ARG_DICT, items, count);
}

struct mr_arg mr_ml_list(const struct mr_arg *items, uint32_t count)
{
    return many(MR_ARG_LIST, items, count);
}

const struct mr_arg *mr_ml_member(const struct mr_arg *dict, const char *name)
{
    if (dict->type != MR_ARG_DICT) return NULL;
    for (uint32_t i = 0; i < dict->count; i++)
        if (mr_str_eq(dict->items[i].name, mr_str(name))) return &dict->items[i];
    return NULL;
}
