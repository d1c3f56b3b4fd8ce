/* Operators that rearrange elements: reshape, transpose, slice, take, concat, stack, split, part,
 * tile, copy, astype. Results are contiguous. If a tensor already has the shape that reshape should
 * give it, or the type that astype should give it, the operator returns that tensor without a copy.
 */
#include "ops/array/array.h"

#include "base/limits.h"
#include "base/pack.h"
#include "base/unconst.h"
#include "store/object/value.h"

#define PARTS_MAX 65536

static int tensor_arg(struct mr_op_call *call, uint32_t i, struct mr_tensor *out)
{
    return mr_array_tensor(call, &call->args[i], call->op->params[i].name, out);
}

/* True: argument 0 is a tensor that can be returned without a copy. */
static bool may_pass(const struct mr_op_call *call)
{
    return call->args[0].type == MR_ARG_TENSOR;
}

/* The result is a copy with the same axes. If `t` has no axes, the result is still a tensor, while
 * mr_array_return would return a plain number. */
static int return_copy(struct mr_op_call *call, const struct mr_tensor *t)
{
    void *data = call->does->return_tensor(call, t->dtype, t->ndim, t->shape);
    if (!data) return MR_ELIMIT;
    return mr_array_copy(call, t, data);
}

static int return_number(struct mr_op_call *call, const struct mr_tensor *t)
{
    const void *p = t->data;
    if (t->dtype == MR_DTYPE_BOOL) return call->does->return_bool(call, *(const unsigned char *)p);
    if (mr_dtype_is_float(t->dtype))
        return call->does->return_float(call, mr_dtype_get_f64(t->dtype, p));
    uint64_t v = 0;
    char *io[2] = {mr_unconst(p), (char *)&v};
    const ptrdiff_t step[2] = {0, 0};
    enum mr_dtype wide = mr_dtype_is_signed(t->dtype) ? MR_DTYPE_I64 : MR_DTYPE_U64;
    mr_cast_kernel(t->dtype, wide)(io, 1, step);
    struct mr_arg a = {.type = wide == MR_DTYPE_U64 && v > INT64_MAX ? MR_ARG_UINT : MR_ARG_INT,
        .input = MR_ARG_NO_INPUT,
        .u = v};
    return call->does->return_arg(call, &a);
}

int mr_array_return(struct mr_op_call *call, const struct mr_tensor *t)
{
    return t->ndim ? return_copy(call, t) : return_number(call, t);
}

/* ---- reshape, transpose ---- */

/* Reads a shape in which one length may be -1. This length is computed from the other lengths and
 * the number of elements. */
static int wanted_shape(
    struct mr_op_call *call, const struct mr_tensor *x, unsigned *ndim, uint64_t *shape)
{
    const struct mr_arg *arg = &call->args[1];
    const struct mr_arg *items = arg->type == MR_ARG_LIST ? arg->items : arg;
    *ndim = arg->type == MR_ARG_LIST ? arg->count : 1;
    if (*ndim > MR_TENSOR_DIMS_MAX)
        return call->does->fail(call, MR_ELIMIT,
            "argument \"shape\": %u axes, at most %d are allowed", *ndim, MR_TENSOR_DIMS_MAX);
    unsigned open = *ndim;
    uint64_t known = 1;
    for (unsigned i = 0; i < *ndim; i++) {
        int64_t length = 0;
        int err = mr_arg_int(call, &items[i], "shape", -1, (int64_t)MR_OBJECT_BYTES_MAX, &length);
        if (err) return err;
        if (length < 0 && open < *ndim)
            return call->does->fail(
                call, MR_EINVAL, "argument \"shape\": only one length may be -1");
        if (length < 0)
            open = i;
        else if (__builtin_mul_overflow(known, (uint64_t)length, &known))
            return call->does->fail(call, MR_ELIMIT, "argument \"shape\": too large");
        shape[i] = (uint64_t)MR_MAX(length, 0);
    }
    uint64_t n = mr_tensor_elements(x);
    if (open == *ndim && known == n) return MR_OK;
    /* If x has no elements, the length given as -1 becomes 0: (-1, 4) becomes (0, 4). */
    if (open < *ndim && known && n % known == 0) {
        shape[open] = n / known;
        return MR_OK;
    }
    char from[MR_TENSOR_TEXT_MAX];
    mr_tensor_text(x->dtype, x->ndim, x->shape, from);
    return call->does->fail(call, MR_EINVAL,
        "argument \"shape\": the %llu elements of %s do not fill it", (unsigned long long)n, from);
}

static int run_reshape(struct mr_op_call *call)
{
    struct mr_tensor x;
    unsigned ndim = 0;
    uint64_t shape[MR_TENSOR_DIMS_MAX] = {0};
    int err = tensor_arg(call, 0, &x);
    if (!err) err = wanted_shape(call, &x, &ndim, shape);
    if (err) return err;
    bool same = ndim == x.ndim && memcmp(shape, x.shape, ndim * sizeof *shape) == 0;
    if (same && may_pass(call)) return call->does->return_arg(call, &call->args[0]);
    void *data = call->does->return_tensor(call, x.dtype, ndim, shape);
    if (!data) return MR_ELIMIT;
    return mr_array_copy(call, &x, data);
}

static int run_transpose(struct mr_op_call *call)
{
    struct mr_tensor x;
    int err = tensor_arg(call, 0, &x);
    if (err) return err;
    const struct mr_arg *axes = &call->args[1];
    struct mr_tensor t = x;
    uint32_t seen = 0;
    if (axes->type == MR_ARG_LIST && axes->count != x.ndim)
        return call->does->fail(call, MR_EINVAL,
            "argument \"axes\": expected each of the %u axes once, got %u", x.ndim, axes->count);
    for (unsigned i = 0; i < x.ndim; i++) {
        unsigned from = x.ndim - 1 - i;
        if (axes->type == MR_ARG_LIST)
            err = mr_array_axis(call, &axes->items[i], "axes", x.ndim, &from);
        if (err) return err;
        if (seen >> from & 1)
            return call->does->fail(
                call, MR_EINVAL, "argument \"axes\": axis %u is given twice", from);
        seen |= 1u << from;
        t.shape[i] = x.shape[from];
        t.strides[i] = x.strides[from];
    }
    return return_copy(call, &t);
}

/* ---- slice, take ---- */

/* Returns the bound of one axis, from an int (for axis 0) or from a list. NULL: the axis has no
 * bound. */
static const struct mr_arg *bound_of(const struct mr_arg *arg, unsigned axis)
{
    if (arg->type == MR_ARG_LIST) return axis < arg->count ? &arg->items[axis] : NULL;
    return axis == 0 ? arg : NULL;
}

static int bound(
    struct mr_op_call *call, uint32_t param, unsigned axis, int64_t otherwise, int64_t *out)
{
    const struct mr_arg *a = bound_of(&call->args[param], axis);
    *out = otherwise;
    if (!a || a->type == MR_ARG_NIL) return MR_OK;
    return mr_arg_int(call, a, call->op->params[param].name, INT64_MIN + 1, INT64_MAX, out);
}

/* Applies start:stop:step to one axis, as Python does. */
static int slice_axis(struct mr_op_call *call, struct mr_tensor *t, unsigned axis)
{
    int64_t n = (int64_t)t->shape[axis];
    int64_t step = 1;
    int64_t start = 0;
    int64_t stop = 0;
    int err = bound(call, 3, axis, 1, &step);
    if (err) return err;
    if (!step) return call->does->fail(call, MR_EINVAL, "argument \"step\": expected not 0");
    err = bound(call, 1, axis, step > 0 ? 0 : n - 1, &start);
    if (!err) err = bound(call, 2, axis, step > 0 ? n : -n - 1, &stop);
    if (err) return err;
    int64_t low = step > 0 ? 0 : -1;
    int64_t high = step > 0 ? n : n - 1;
    if (start < 0) start += n;
    if (stop < 0) stop += n;
    start = MR_MIN(MR_MAX(start, low), high);
    stop = MR_MIN(MR_MAX(stop, low), high);
    int64_t distance = step > 0 ? stop - start : start - stop;
    uint64_t stride = step > 0 ? (uint64_t)step : (uint64_t)-step;
    t->shape[axis] = distance > 0 ? ((uint64_t)distance - 1) / stride + 1 : 0;
    if (!t->shape[axis]) return MR_OK;
    t->data = (const char *)t->data + start * t->strides[axis];
    t->strides[axis] = t->shape[axis] > 1 ? t->strides[axis] * step : 0;
    return MR_OK;
}

static int run_slice(struct mr_op_call *call)
{
    struct mr_tensor x;
    int err = tensor_arg(call, 0, &x);
    if (err) return err;
    for (uint32_t i = 1; i <= 3; i++) {
        const struct mr_arg *a = &call->args[i];
        uint32_t count = a->type == MR_ARG_LIST ? a->count : a->type == MR_ARG_NIL ? 0 : 1;
        if (count > x.ndim)
            return call->does->fail(call, MR_EINVAL,
                "argument \"%s\": %u bounds for a tensor of %u axes", call->op->params[i].name,
                count, x.ndim);
    }
    for (unsigned axis = 0; axis < x.ndim && !err; axis++)
        err = slice_axis(call, &x, axis);
    return err ? err : return_copy(call, &x);
}

/* Sets `*out` to the index in element `i` of `indices`. A negative index counts from the end.
 * False: the index is out of range. */
static bool index_at(const struct mr_tensor *indices, uint64_t i, uint64_t length, uint64_t *out)
{
    const int64_t *p = indices->data;
    int64_t at = p[i] < 0 ? p[i] + (int64_t)length : p[i];
    *out = (uint64_t)at;
    return at >= 0 && (uint64_t)at < length;
}

/* Converts `t` to a contiguous tensor of i64 in scratch memory. */
static int as_indices(struct mr_op_call *call, struct mr_tensor *t, const char *name)
{
    uint64_t n = mr_tensor_elements(t);
    if (!mr_dtype_is_integer(t->dtype) && n)
        return call->does->fail(call, MR_EINVAL, "argument \"%s\": expected integers, got %s", name,
            mr_dtype_name(t->dtype));
    int64_t *p = call->does->scratch(call, MR_MAX(n, 1u) * sizeof *p);
    if (!p) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, MR_DTYPE_I64, t->ndim, t->shape, p);
    int err = mr_array_cast(call, t, &out);
    *t = out;
    return err;
}

static int run_take(struct mr_op_call *call)
{
    struct mr_tensor x;
    struct mr_tensor k;
    unsigned axis = 0;
    int err = tensor_arg(call, 0, &x);
    if (!err) err = tensor_arg(call, 1, &k);
    if (!err) err = as_indices(call, &k, "indices");
    if (!err) err = mr_array_axis(call, &call->args[2], "axis", x.ndim, &axis);
    if (err) return err;
    if (x.ndim - 1 + k.ndim > MR_TENSOR_DIMS_MAX)
        return call->does->fail(call, MR_ELIMIT, "the result would have too many axes");
    struct mr_tensor out = {.ndim = x.ndim - 1 + k.ndim};
    memcpy(out.shape, x.shape, axis * sizeof *x.shape);
    memcpy(out.shape + axis, k.shape, k.ndim * sizeof *x.shape);
    memcpy(out.shape + axis + k.ndim, x.shape + axis + 1, (x.ndim - axis - 1) * sizeof *x.shape);
    char *data = call->does->return_tensor(call, x.dtype, out.ndim, out.shape);
    if (!data) return MR_ELIMIT;
    /* The result has the axes outer × indices × inner. */
    uint64_t n = mr_tensor_elements(&k);
    struct mr_tensor line = x; /* the elements at one index of the axis */
    line.shape[axis] = 1;
    struct mr_tensor to;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    memcpy(shape, x.shape, sizeof shape);
    shape[axis] = n;
    mr_tensor_init(&to, x.dtype, x.ndim, shape, data);
    to.shape[axis] = 1;
    for (uint64_t i = 0; i < n && !err; i++) {
        uint64_t at = 0;
        if (!index_at(&k, i, x.shape[axis], &at))
            return call->does->fail(call, MR_ERANGE,
                "argument \"indices\": no element %lld along an axis of %llu",
                (long long)((const int64_t *)k.data)[i], (unsigned long long)x.shape[axis]);
        line.data = (const char *)x.data + (int64_t)at * x.strides[axis];
        to.data = data + (int64_t)i * to.strides[axis];
        err = mr_array_cast(call, &line, &to);
    }
    return err;
}

/* ---- concat, stack, split ---- */

int mr_array_concat(
    struct mr_op_call *call, const struct mr_arg *parts, uint32_t count, int64_t axis)
{
    if (!count) return call->does->fail(call, MR_EINVAL, "needs one tensor at least");
    struct mr_tensor *t = call->does->scratch(call, count * sizeof *t);
    if (!t) return MR_ELIMIT;
    enum mr_dtype dtype = MR_DTYPE_NONE;
    uint64_t shape[MR_TENSOR_DIMS_MAX] = {0};
    unsigned along = 0;
    for (uint32_t i = 0; i < count; i++) {
        int err = mr_array_tensor(call, &parts[i], "parts", &t[i]);
        if (err) return err;
        if (axis < -(int64_t)t[0].ndim || axis >= (int64_t)t[0].ndim)
            return call->does->fail(
                call, MR_ERANGE, "argument \"axis\": axis %lld of %u", (long long)axis, t[0].ndim);
        along = (unsigned)(axis < 0 ? axis + t[0].ndim : axis);
        dtype = i ? mr_dtype_promote(dtype, t[i].dtype) : t[0].dtype;
        bool fits = t[i].ndim == t[0].ndim;
        for (unsigned k = 0; k < t[0].ndim && fits; k++)
            fits = k == along || t[i].shape[k] == t[0].shape[k];
        if (!fits) {
            char a[MR_TENSOR_TEXT_MAX];
            char b[MR_TENSOR_TEXT_MAX];
            mr_tensor_text(t[0].dtype, t[0].ndim, t[0].shape, a);
            mr_tensor_text(t[i].dtype, t[i].ndim, t[i].shape, b);
            return call->does->fail(
                call, MR_EINVAL, "%s and %s differ in more than axis %u", a, b, along);
        }
        shape[along] += t[i].shape[along];
    }
    for (unsigned k = 0; k < t[0].ndim; k++)
        if (k != along) shape[k] = t[0].shape[k];
    char *data = call->does->return_tensor(call, dtype, t[0].ndim, shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, dtype, t[0].ndim, shape, data);
    int err = MR_OK;
    for (uint32_t i = 0; i < count && !err; i++) {
        to.shape[along] = t[i].shape[along];
        err = mr_array_cast(call, &t[i], &to);
        to.data = (const char *)to.data + to.strides[along] * (int64_t)t[i].shape[along];
    }
    return err;
}

static int run_concat(struct mr_op_call *call)
{
    return mr_array_concat(call, call->args[0].items, call->args[0].count, call->args[1].i);
}

static int run_stack(struct mr_op_call *call)
{
    const struct mr_arg *parts = &call->args[0];
    if (!parts->count) return call->does->fail(call, MR_EINVAL, "needs one tensor at least");
    struct mr_tensor *t = call->does->scratch(call, parts->count * sizeof *t);
    struct mr_arg *grown = call->does->scratch(call, parts->count * sizeof *grown);
    if (!t || !grown) return MR_ELIMIT;
    unsigned axis = 0;
    struct mr_tensor first = {0};
    for (uint32_t i = 0; i < parts->count; i++) {
        int err = mr_array_tensor(call, &parts->items[i], "parts", &t[i]);
        if (!err && i == 0) err = mr_array_axis(call, &call->args[1], "axis", t[i].ndim + 1, &axis);
        if (err) return err;
        if (i == 0) first = t[0];
        if (!mr_tensor_same_shape(&first, &t[i]))
            return call->does->fail(call, MR_EINVAL, "the tensors differ in shape");
        if (first.ndim == MR_TENSOR_DIMS_MAX)
            return call->does->fail(call, MR_ELIMIT, "the result would have too many axes");
        for (unsigned k = t[i].ndim; k > axis; k--) { /* inserts an axis of length 1 */
            t[i].shape[k] = t[i].shape[k - 1];
            t[i].strides[k] = t[i].strides[k - 1];
        }
        t[i].shape[axis] = 1;
        t[i].strides[axis] = 0;
        t[i].ndim++;
        grown[i] =
            (struct mr_arg){.type = MR_ARG_TENSOR, .tensor = &t[i], .input = MR_ARG_NO_INPUT};
    }
    return mr_array_concat(call, grown, parts->count, axis);
}

/* Returns part `i` of `n` parts of nearly equal length along an axis, as numpy.array_split does. */
static struct mr_tensor part_of(const struct mr_tensor *x, unsigned axis, uint64_t i, uint64_t n)
{
    struct mr_tensor t = *x;
    uint64_t length = x->shape[axis] / n;
    uint64_t longer = x->shape[axis] % n;
    t.shape[axis] = length + (i < longer);
    uint64_t start = i * length + MR_MIN(i, longer);
    if (t.shape[axis]) t.data = (const char *)x->data + (int64_t)start * x->strides[axis];
    return t;
}

static int part_args(struct mr_op_call *call, uint32_t parts_at, uint32_t axis_at,
    struct mr_tensor *x, int64_t *parts, unsigned *axis)
{
    int err = tensor_arg(call, 0, x);
    if (!err) err = mr_arg_int(call, &call->args[parts_at], "parts", 1, PARTS_MAX, parts);
    return err ? err : mr_array_axis(call, &call->args[axis_at], "axis", x->ndim, axis);
}

static int run_part(struct mr_op_call *call)
{
    struct mr_tensor x;
    int64_t parts = 0;
    int64_t index = 0;
    unsigned axis = 0;
    int err = part_args(call, 2, 3, &x, &parts, &axis);
    if (!err) err = mr_arg_int(call, &call->args[1], "index", 0, parts - 1, &index);
    if (err) return err;
    struct mr_tensor t = part_of(&x, axis, (uint64_t)index, (uint64_t)parts);
    return return_copy(call, &t);
}

static int run_split(struct mr_op_call *call)
{
    struct mr_tensor x;
    int64_t parts = 0;
    unsigned axis = 0;
    int err = part_args(call, 1, 2, &x, &parts, &axis);
    if (err) return err;
    struct mr_arg *items = call->does->scratch(call, (uint64_t)parts * sizeof *items);
    if (!items) return MR_ELIMIT;
    for (int64_t i = 0; i < parts; i++) {
        struct mr_tensor t = part_of(&x, axis, (uint64_t)i, (uint64_t)parts);
        uint64_t bytes = mr_tensor_bytes(t.dtype, t.ndim, t.shape);
        void *extent = call->does->scratch(call, bytes);
        if (!extent) return MR_ELIMIT;
        err = mr_array_copy(call, &t, mr_tensor_build(extent, t.dtype, t.ndim, t.shape));
        if (err) return err;
        items[i] = (struct mr_arg){.type = MR_ARG_TENSOR,
            .input = MR_ARG_NO_INPUT,
            .extent = mr_str_of(extent, (size_t)bytes)};
    }
    struct mr_arg list = {
        .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = items, .count = (uint32_t)parts};
    return call->does->return_arg(call, &list);
}

/* ---- tile, copy, astype ---- */

/* Runs array.tile, which repeats the tensor along each axis as numpy.tile does. */
static int run_tile(struct mr_op_call *call)
{
    struct mr_tensor x;
    unsigned ndim = 0;
    uint64_t times[MR_TENSOR_DIMS_MAX];
    int err = tensor_arg(call, 0, &x);
    if (!err) err = mr_array_shape(call, &call->args[1], "times", &ndim, times);
    if (err) return err;
    unsigned dims = MR_MAX(ndim, x.ndim);
    if (2 * dims > MR_TENSOR_DIMS_MAX)
        return call->does->fail(call, MR_ELIMIT, "at most %d axes", MR_TENSOR_DIMS_MAX / 2);
    struct mr_tensor from = {.dtype = x.dtype, .ndim = 2 * dims, .data = x.data};
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    /* Each axis becomes two axes: the repeats (stride 0) and the length. */
    for (unsigned i = 0; i < dims; i++) {
        unsigned missing = dims - x.ndim;
        uint64_t repeats = i + ndim < dims ? 1 : times[i + ndim - dims];
        uint64_t length = i < missing ? 1 : x.shape[i - missing];
        from.shape[2 * i] = repeats;
        from.shape[2 * i + 1] = length;
        from.strides[2 * i + 1] = i < missing ? 0 : x.strides[i - missing];
        if (__builtin_mul_overflow(repeats, length, &shape[i])) shape[i] = UINT64_MAX;
    }
    void *data = call->does->return_tensor(call, x.dtype, dims, shape);
    if (!data) return MR_ELIMIT;
    return mr_array_copy(call, &from, data);
}

static int run_copy(struct mr_op_call *call)
{
    struct mr_tensor x;
    int err = tensor_arg(call, 0, &x);
    return err ? err : return_copy(call, &x);
}

static int run_astype(struct mr_op_call *call)
{
    struct mr_tensor x;
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = tensor_arg(call, 0, &x);
    if (!err) err = mr_array_dtype(call, &call->args[1], "dtype", &t);
    if (err) return err;
    if (t == x.dtype && may_pass(call)) return call->does->return_arg(call, &call->args[0]);
    void *data = call->does->return_tensor(call, t, x.ndim, x.shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, t, x.ndim, x.shape, data);
    return mr_array_cast(call, &x, &out);
}

/* ---- descriptors ---- */

#define D MR_OP_DETERMINISTIC
#define X_PARAM                                                                                    \
    {                                                                                              \
        "x", MR_TAKES_ARRAY, NULL, "A tensor or a nested list of numbers."                         \
    }
#define AXIS_PARAM(doc)                                                                            \
    {                                                                                              \
        "axis", MR_TAKES_INT, "0", doc                                                             \
    }
#define INTS (MR_TAKES_INT | MR_TAKES_LIST)

static const struct mr_op_param one[] = {X_PARAM};
static const struct mr_op_param reshaped[] = {
    X_PARAM,
    {"shape", INTS, NULL, "Lengths of the axes; one may be -1: the length that fits."},
};
static const struct mr_op_param transposed[] = {
    X_PARAM,
    {"axes", MR_TAKES_LIST | MR_TAKES_NIL, "null",
        "The axes in their new order; null: reversed order."},
};
static const struct mr_op_param sliced[] = {
    X_PARAM,
    {"start", INTS | MR_TAKES_NIL, "null",
        "First index of axis 0, or a list with one for each axis."},
    {"stop", INTS | MR_TAKES_NIL, "null", "The end, not included; negative: from the end."},
    {"step", INTS | MR_TAKES_NIL, "null", "Step between elements; negative: backwards."},
};
static const struct mr_op_param taken[] = {
    X_PARAM,
    {"indices", MR_TAKES_INT | MR_TAKES_LIST | MR_TAKES_TENSOR, NULL,
        "Indices of the elements, in any order; negative: from the end."},
    AXIS_PARAM("The axis."),
};
static const struct mr_op_param joined[] = {
    {"parts", MR_TAKES_LIST, NULL, "A list of tensors."},
    AXIS_PARAM("The axis."),
};
static const struct mr_op_param split[] = {
    X_PARAM,
    {"parts", MR_TAKES_INT, NULL,
        "Number of parts, 1 to 65,536; if the length is not divisible, the first parts are longer."},
    AXIS_PARAM("The axis."),
};
static const struct mr_op_param one_part[] = {
    X_PARAM,
    {"index", MR_TAKES_INT, NULL, "Index of the part, from 0."},
    {"parts", MR_TAKES_INT, NULL, "Number of parts, 1 to 65,536."},
    AXIS_PARAM("The axis."),
};
static const struct mr_op_param tiled[] = {
    X_PARAM,
    {"times", INTS, NULL, "Number of repetitions along the last axis, or a list for all axes."},
};
static const struct mr_op_param cast[] = {
    X_PARAM,
    {"dtype", MR_TAKES_TEXT, NULL, "Element type: bool, i8 … i64, u8 … u64, f16, f32 or f64."},
};

const struct mr_op_desc *mr_array_shape_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("array.reshape", D, reshaped, 2000, run_reshape, "tensor",
            "Arranges the same elements in another shape, in row-major order."),
        MR_OP_ROW("array.transpose", D, transposed, 2000, run_transpose, "tensor",
            "Puts the axes in another order."),
        MR_OP_ROW("array.slice", D, sliced, 2000, run_slice, "tensor",
            "Takes the elements from start to stop by step along each axis, as Python slices."),
        MR_OP_ROW("array.take", D, taken, 2000, run_take, "tensor",
            "Takes the elements at indices along an axis; an index out of range is an error."),
        MR_OP_ROW("array.concat", D, joined, 2000, run_concat, "tensor",
            "Joins tensors along an axis; their other axes must be equal, types are promoted."),
        MR_OP_ROW("array.stack", D, joined, 2000, run_stack, "tensor",
            "Joins tensors of one shape along a new axis."),
        MR_OP_ROW("array.split", D, split, 2000, run_split, "list of tensors",
            "Splits a tensor into parts of nearly equal length along an axis."),
        MR_OP_ROW("array.part", D, one_part, 2000, run_part, "tensor",
            "Takes one of several parts of nearly equal length along an axis."),
        MR_OP_ROW(
            "array.tile", D, tiled, 2000, run_tile, "tensor", "Repeats the tensor along its axes."),
        MR_OP_ROW("array.copy", D, one, 2000, run_copy, "tensor", "Copies the tensor."),
        MR_OP_ROW("array.astype", D, cast, 2000, run_astype, "tensor",
            "Converts to another type: floats are truncated towards zero and clamped to the "
            "range, integers wrap."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
