/* Arguments as arrays, shapes, types and axes. */
#include "ops/array.h"
#include "ops/call.h"

#include "base/limits.h"

double mr_arg_f64(const struct mr_arg *arg)
{
    if (arg->type == MR_ARG_BOOL) return arg->boolean;
    if (arg->type == MR_ARG_INT) return (double)arg->i;
    if (arg->type == MR_ARG_UINT) return (double)arg->u;
    return arg->type == MR_ARG_FLOAT ? arg->f : 0;
}

static int wrong(
    struct mr_op_call *call, const char *name, const char *expected, const struct mr_arg *got)
{
    return call->does->fail(call, MR_EINVAL, "argument \"%s\": expected %s, got %s", name, expected,
        mr_arg_type_name(got->type));
}

static enum mr_dtype type_of_number(const struct mr_arg *a)
{
    switch ((int)a->type) {
    case MR_ARG_BOOL: return MR_DTYPE_BOOL;
    case MR_ARG_INT: return MR_DTYPE_I64;
    case MR_ARG_UINT: return MR_DTYPE_U64;
    case MR_ARG_FLOAT: return MR_DTYPE_F64;
    default: return MR_DTYPE_NONE;
    }
}

static int number_operand(struct mr_op_call *call, const struct mr_arg *arg, struct mr_operand *out)
{
    out->cell = call->does->scratch(call, 16);
    if (!out->cell) return MR_ELIMIT;
    enum mr_dtype t = type_of_number(arg);
    if (t == MR_DTYPE_BOOL)
        *(unsigned char *)out->cell = arg->boolean;
    else
        memcpy(out->cell, &arg->u, sizeof arg->u);
    out->weak = t == MR_DTYPE_BOOL ? MR_WEAK_NO : t == MR_DTYPE_F64 ? MR_WEAK_FLOAT : MR_WEAK_INT;
    mr_tensor_init(&out->t, t, 0, NULL, out->cell);
    return MR_OK;
}

/* ---- nested lists ---- */

/* Shape of a nested list by its first branch, and the type that holds all numbers. */
static int list_shape(struct mr_op_call *call, const struct mr_arg *list, const char *name,
    unsigned *ndim, uint64_t *shape)
{
    *ndim = 0;
    for (const struct mr_arg *a = list; a->type == MR_ARG_LIST; a = &a->items[0]) {
        if (*ndim == MR_TENSOR_DIMS_MAX)
            return call->does->fail(call, MR_ELIMIT, "argument \"%s\": nested deeper than %d", name,
                MR_TENSOR_DIMS_MAX);
        shape[(*ndim)++] = a->count;
        if (!a->count) break;
    }
    return MR_OK;
}

struct walk {
    const struct mr_arg *items[MR_TENSOR_DIMS_MAX];
    uint64_t at[MR_TENSOR_DIMS_MAX];
};

/* Calls `each` on every number of the list, in order; refuses lists that are not all alike. */
static int walk_list(struct mr_op_call *call, const struct mr_arg *list, const char *name,
    unsigned ndim, const uint64_t *shape, void (*each)(void *ctx, const struct mr_arg *number),
    void *ctx)
{
    struct walk w = {.items = {list->items}};
    unsigned depth = 0;
    for (;;) {
        if (w.at[depth] == shape[depth]) {
            if (depth == 0) return MR_OK;
            depth--;
            continue;
        }
        const struct mr_arg *a = &w.items[depth][w.at[depth]++];
        if (depth + 1 == ndim) {
            if (type_of_number(a) == MR_DTYPE_NONE)
                return wrong(call, name, "a nested list of numbers", a);
            each(ctx, a);
            continue;
        }
        if (a->type != MR_ARG_LIST || a->count != shape[depth + 1])
            return call->does->fail(call, MR_EINVAL,
                "argument \"%s\": the lists inside a list must have one length", name);
        depth++;
        w.items[depth] = a->items;
        w.at[depth] = 0;
    }
}

static void find_type(void *ctx, const struct mr_arg *a)
{
    enum mr_dtype *t = ctx;
    enum mr_dtype own = type_of_number(a);
    *t = *t == MR_DTYPE_NONE ? own : mr_dtype_promote(*t, own);
}

struct filling {
    enum mr_dtype dtype;
    char *p;
};

static void fill_number(void *ctx, const struct mr_arg *a)
{
    struct filling *f = ctx;
    if (f->dtype == MR_DTYPE_BOOL) {
        *f->p++ = a->boolean;
        return;
    }
    double v = mr_arg_f64(a);
    int64_t i = a->type == MR_ARG_BOOL ? a->boolean : a->i;
    memcpy(f->p, f->dtype == MR_DTYPE_F64 ? (const void *)&v : (const void *)&i, 8);
    f->p += 8;
}

static int list_tensor(
    struct mr_op_call *call, const struct mr_arg *list, const char *name, struct mr_tensor *out)
{
    unsigned ndim = 0;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    int err = list_shape(call, list, name, &ndim, shape);
    if (err) return err;
    enum mr_dtype t = MR_DTYPE_NONE;
    err = walk_list(call, list, name, ndim, shape, find_type, &t);
    if (err) return err;
    if (t == MR_DTYPE_NONE) t = MR_DTYPE_F64; /* empty: as NumPy */
    struct mr_error why = {0};
    uint64_t bytes = 0;
    if (mr_tensor_shape_check(t, ndim, shape, NULL, &bytes, &why))
        return call->does->fail(call, why.code, "argument \"%s\": %s", name, why.text);
    struct filling f = {.dtype = t, .p = call->does->scratch(call, MR_MAX(bytes, 8u))};
    if (!f.p) return MR_ELIMIT;
    mr_tensor_init(out, t, ndim, shape, f.p);
    return walk_list(call, list, name, ndim, shape, fill_number, &f);
}

int mr_array_operand(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_operand *out)
{
    *out = (struct mr_operand){.name = name};
    if (arg->type == MR_ARG_TENSOR) {
        out->t = *arg->tensor;
        return MR_OK;
    }
    if (arg->type == MR_ARG_LIST) return list_tensor(call, arg, name, &out->t);
    if (type_of_number(arg) == MR_DTYPE_NONE)
        return wrong(call, name, "a tensor, a number or a list of numbers", arg);
    return number_operand(call, arg, out);
}

int mr_array_tensor(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_tensor *out)
{
    struct mr_operand o;
    int err = mr_array_operand(call, arg, name, &o);
    if (!err) *out = o.t;
    return err;
}

/* ---- shapes, types, axes ---- */

int mr_arg_int(struct mr_op_call *call, const struct mr_arg *arg, const char *name, int64_t min,
    int64_t max, int64_t *out)
{
    if (arg->type != MR_ARG_INT && arg->type != MR_ARG_UINT)
        return wrong(call, name, "an int", arg);
    if (arg->type == MR_ARG_UINT || arg->i < min || arg->i > max)
        return call->does->fail(call, MR_ERANGE,
            "argument \"%s\": expected %lld to %lld, got %s%lld", name, (long long)min,
            (long long)max, arg->type == MR_ARG_UINT ? "more than " : "",
            (long long)(arg->type == MR_ARG_UINT ? INT64_MAX : arg->i));
    *out = arg->i;
    return MR_OK;
}

int mr_array_shape(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned *ndim, uint64_t shape[MR_TENSOR_DIMS_MAX])
{
    const struct mr_arg *items = arg->type == MR_ARG_LIST ? arg->items : arg;
    uint32_t count = arg->type == MR_ARG_LIST ? arg->count : 1;
    if (count > MR_TENSOR_DIMS_MAX)
        return call->does->fail(call, MR_ELIMIT, "argument \"%s\": %u axes, at most %d are allowed",
            name, count, MR_TENSOR_DIMS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        int64_t length = 0;
        int err = mr_arg_int(call, &items[i], name, 0, (int64_t)MR_OBJECT_BYTES_MAX, &length);
        if (err) return err;
        shape[i] = (uint64_t)length;
    }
    *ndim = count;
    return MR_OK;
}

int mr_array_dtype(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, enum mr_dtype *out)
{
    if (arg->type != MR_ARG_TEXT) return wrong(call, name, "the name of a type", arg);
    if (mr_dtype_parse(arg->bytes, out))
        return call->does->fail(call, MR_EINVAL,
            "argument \"%s\": no type \"%.*s\"; there are bool, i8-i64, u8-u64, f16, f32, f64",
            name, (int)MR_MIN(arg->bytes.n, 40u), arg->bytes.p);
    return MR_OK;
}

int mr_array_axis(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned ndim, unsigned *out)
{
    int64_t axis = 0;
    int err = mr_arg_int(call, arg, name, INT64_MIN, INT64_MAX, &axis);
    if (err) return err;
    if (axis < -(int64_t)ndim || axis >= (int64_t)ndim)
        return call->does->fail(call, MR_ERANGE,
            "argument \"%s\": axis %lld of an array with %u ax%ss", name, (long long)axis, ndim,
            ndim == 1 ? "i" : "e");
    *out = (unsigned)(axis < 0 ? axis + (int64_t)ndim : axis);
    return MR_OK;
}

int mr_array_axes(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned ndim, uint32_t *out)
{
    *out = 0;
    if (arg->type == MR_ARG_NIL) {
        *out = ndim == 32 ? UINT32_MAX : (1u << ndim) - 1;
        return MR_OK;
    }
    const struct mr_arg *items = arg->type == MR_ARG_LIST ? arg->items : arg;
    uint32_t count = arg->type == MR_ARG_LIST ? arg->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        unsigned axis = 0;
        int err = mr_array_axis(call, &items[i], name, ndim, &axis);
        if (err) return err;
        if (*out >> axis & 1)
            return call->does->fail(
                call, MR_EINVAL, "argument \"%s\": axis %u is given twice", name, axis);
        *out |= 1u << axis;
    }
    return MR_OK;
}
