/* Converts arguments to arrays, shapes, types and axes. */
#include "ops/array/array.h"

#include "base/limits.h"
#include "ops/arg.h"

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

/* ---- nested lists of numbers, or of tensors of one shape ---- */

/* Returns the type of a leaf. MR_DTYPE_NONE: the leaf is neither a number nor a tensor. */
static enum mr_dtype leaf_type(const struct mr_arg *a)
{
    return a->type == MR_ARG_TENSOR ? a->tensor->dtype : type_of_number(a);
}

struct nest {
    unsigned lists; /* number of axes that are lists */
    unsigned ndim;  /* number of all axes, with those of the tensors inside the lists */
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    enum mr_dtype dtype;
    bool tensors;
    bool below_u64; /* some leaf is negative, or is not an integer */
    char *p;        /* where the next leaf is written */
};

/* Finds the shape from the first items; walk_list compares the other items with this shape. */
static int nest_shape(
    struct mr_op_call *call, const struct mr_arg *list, const char *name, struct nest *n)
{
    const struct mr_arg *a = list;
    for (; a->type == MR_ARG_LIST && n->lists < MR_TENSOR_DIMS_MAX; a = &a->items[0]) {
        n->shape[n->lists++] = a->count;
        if (!a->count) break;
    }
    n->ndim = n->lists;
    if (a->type == MR_ARG_TENSOR && n->lists + a->tensor->ndim <= MR_TENSOR_DIMS_MAX) {
        memcpy(n->shape + n->lists, a->tensor->shape, a->tensor->ndim * sizeof *n->shape);
        n->ndim += a->tensor->ndim;
    } else if (a->type == MR_ARG_TENSOR || (a->type == MR_ARG_LIST && a->count)) {
        return call->does->fail(
            call, MR_ELIMIT, "argument \"%s\": nested deeper than %d", name, MR_TENSOR_DIMS_MAX);
    }
    return MR_OK;
}

/* Checks that a leaf is a number, or a tensor of the same shape as the other leaves. Sets n->dtype
 * to the common type of this leaf and the leaves before it. */
static int check_leaf(
    struct mr_op_call *call, const struct mr_arg *a, const char *name, struct nest *n)
{
    enum mr_dtype own = leaf_type(a);
    if (own == MR_DTYPE_NONE) return wrong(call, name, "a nested list of numbers", a);
    unsigned ndim = a->type == MR_ARG_TENSOR ? a->tensor->ndim : 0;
    if (ndim != n->ndim - n->lists ||
        (ndim && memcmp(a->tensor->shape, n->shape + n->lists, ndim * sizeof *n->shape) != 0))
        return call->does->fail(
            call, MR_EINVAL, "argument \"%s\": the items of the list differ in shape", name);
    n->tensors |= a->type == MR_ARG_TENSOR;
    n->below_u64 |= !(a->type == MR_ARG_UINT || (a->type == MR_ARG_INT && a->i >= 0));
    n->dtype = n->dtype == MR_DTYPE_NONE ? own : mr_dtype_promote(n->dtype, own);
    return MR_OK;
}

/* Writes a leaf, converted to n->dtype, to n->p. */
static int fill_leaf(
    struct mr_op_call *call, const struct mr_arg *a, const char *name, struct nest *n)
{
    (void)name;
    size_t width = mr_dtype_bytes(n->dtype);
    /* All leaves are numbers (bool, i64, u64 or f64), as in most calls. */
    if (!n->tensors) {
        double v = mr_arg_f64(a);
        uint64_t i = a->type == MR_ARG_BOOL ? a->boolean : a->u;
        if (n->dtype == MR_DTYPE_BOOL)
            *n->p = a->boolean;
        else
            memcpy(n->p, n->dtype == MR_DTYPE_F64 ? (const void *)&v : (const void *)&i, 8);
        n->p += width;
        return MR_OK;
    }
    struct mr_tensor from;
    struct mr_tensor to;
    unsigned char number = a->type == MR_ARG_BOOL && a->boolean;
    if (a->type == MR_ARG_TENSOR)
        from = *a->tensor;
    else
        mr_tensor_init(&from, type_of_number(a), 0, NULL,
            a->type == MR_ARG_BOOL ? (const void *)&number : (const void *)&a->u);
    mr_tensor_init(&to, n->dtype, from.ndim, from.shape, n->p);
    n->p += mr_tensor_elements(&to) * width;
    return mr_array_cast(call, &from, &to);
}

typedef int (*leaf_fn)(
    struct mr_op_call *call, const struct mr_arg *leaf, const char *name, struct nest *n);

/* Calls `each` on every leaf in order. Refuses lists of different lengths at one level. */
static int walk_list(struct mr_op_call *call, const struct mr_arg *list, const char *name,
    struct nest *n, leaf_fn each)
{
    const struct mr_arg *items[MR_TENSOR_DIMS_MAX] = {list->items};
    uint64_t at[MR_TENSOR_DIMS_MAX] = {0};
    unsigned depth = 0;
    for (;;) {
        if (at[depth] == n->shape[depth]) {
            if (depth == 0) return MR_OK;
            depth--;
            continue;
        }
        const struct mr_arg *a = &items[depth][at[depth]++];
        if (depth + 1 == n->lists) {
            int err = each(call, a, name, n);
            if (err) return err;
            continue;
        }
        if (a->type != MR_ARG_LIST || a->count != n->shape[depth + 1])
            return call->does->fail(call, MR_EINVAL,
                "argument \"%s\": the lists inside a list must have one length", name);
        depth++;
        items[depth] = a->items;
        at[depth] = 0;
    }
}

/* Makes a tensor of a nested list. With `exact`, a list of integers that are all 0 or more becomes
 * u64. Without `exact`, such integers become f64 if some exceed INT64_MAX and others do not, as in
 * NumPy. */
static int list_tensor(struct mr_op_call *call, const struct mr_arg *list, const char *name,
    bool exact, struct mr_tensor *out)
{
    struct nest n = {.dtype = MR_DTYPE_NONE};
    int err = nest_shape(call, list, name, &n);
    if (!err) err = walk_list(call, list, name, &n, check_leaf);
    if (err) return err;
    if (n.dtype == MR_DTYPE_NONE)
        n.dtype = MR_DTYPE_F64; /* the type of an empty list is f64, as in NumPy */
    else if (exact && !n.below_u64)
        n.dtype = MR_DTYPE_U64;
    struct mr_error why = {0};
    uint64_t bytes = 0;
    if (mr_tensor_shape_check(n.dtype, n.ndim, n.shape, NULL, &bytes, &why))
        return call->does->fail(call, why.code, "argument \"%s\": %s", name, why.text);
    n.p = call->does->scratch(call, MR_MAX(bytes, 8u));
    if (!n.p) return MR_ELIMIT;
    mr_tensor_init(out, n.dtype, n.ndim, n.shape, n.p);
    return walk_list(call, list, name, &n, fill_leaf);
}

int mr_array_operand(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_operand *out)
{
    *out = (struct mr_operand){.name = name};
    if (arg->type == MR_ARG_TENSOR) {
        out->t = *arg->tensor;
        return MR_OK;
    }
    if (arg->type == MR_ARG_LIST) return list_tensor(call, arg, name, false, &out->t);
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

int mr_array_tensor_exact(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_tensor *out)
{
    return arg->type == MR_ARG_LIST ? list_tensor(call, arg, name, true, out)
                                    : mr_array_tensor(call, arg, name, out);
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
