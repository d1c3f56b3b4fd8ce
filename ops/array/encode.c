/* Encodings of data for learning: array.one_hot, array.scale. */
#include "ops/array/array.h"

#include <math.h>

static int run_one_hot(struct mr_op_call *call)
{
    struct mr_tensor x;
    int64_t classes = 0;
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = mr_array_tensor(call, &call->args[0], "labels", &x);
    if (!err) err = mr_arg_int(call, &call->args[1], "classes", 1, 1 << 24, &classes);
    if (!err) err = mr_array_dtype(call, &call->args[2], "dtype", &t);
    if (err) return err;
    uint64_t n = mr_tensor_elements(&x);
    if (!mr_dtype_is_integer(x.dtype) && n)
        return call->does->fail(call, MR_EINVAL, "argument \"labels\": expected integers, got %s",
            mr_dtype_name(x.dtype));
    if (x.ndim == MR_TENSOR_DIMS_MAX)
        return call->does->fail(call, MR_ELIMIT, "the result would have too many axes");
    int64_t *labels = call->does->scratch(call, MR_MAX(n, 1u) * sizeof *labels);
    if (!labels) return MR_ELIMIT;
    struct mr_tensor wide;
    mr_tensor_init(&wide, MR_DTYPE_I64, x.ndim, x.shape, labels);
    err = mr_array_cast(call, &x, &wide);
    if (err) return err;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    memcpy(shape, x.shape, x.ndim * sizeof *shape);
    shape[x.ndim] = (uint64_t)classes;
    char *data = call->does->return_tensor(call, t, x.ndim + 1, shape);
    if (!data) return MR_ELIMIT;
    size_t width = mr_dtype_bytes(t);
    memset(data, 0, n * (uint64_t)classes * width);
    int64_t one = 1;
    char hot[8] = {0};
    char *io[2] = {(char *)&one, hot};
    const ptrdiff_t step[2] = {0, 0};
    mr_cast_kernel(MR_DTYPE_I64, t)(io, 1, step);
    for (uint64_t i = 0; i < n; i++) {
        if (labels[i] < 0 || labels[i] >= classes)
            return call->does->fail(call, MR_ERANGE, "label %lld is not one of %lld classes",
                (long long)labels[i], (long long)classes);
        memcpy(data + (i * (uint64_t)classes + (uint64_t)labels[i]) * width, hot, width);
    }
    return MR_OK;
}

/* ---- scale: (x - low) / (high - low) ---- */

static const double type_max[MR_DTYPES_COUNT] = {
    [MR_DTYPE_BOOL] = 1,
    [MR_DTYPE_I8] = INT8_MAX,
    [MR_DTYPE_I16] = INT16_MAX,
    [MR_DTYPE_I32] = INT32_MAX,
    [MR_DTYPE_I64] = (double)INT64_MAX,
    [MR_DTYPE_U8] = UINT8_MAX,
    [MR_DTYPE_U16] = UINT16_MAX,
    [MR_DTYPE_U32] = UINT32_MAX,
    [MR_DTYPE_U64] = (double)UINT64_MAX,
};

static int scale_bounds(struct mr_op_call *call, enum mr_dtype t, double *low, double *high)
{
    const struct mr_arg *l = &call->args[1];
    const struct mr_arg *h = &call->args[2];
    *low = l->type == MR_ARG_NIL ? 0 : mr_arg_f64(l);
    if (h->type == MR_ARG_NIL && mr_dtype_is_float(t))
        return call->does->fail(
            call, MR_EINVAL, "argument \"high\" is needed for %s", mr_dtype_name(t));
    *high = h->type == MR_ARG_NIL ? type_max[t] : mr_arg_f64(h);
    if (!(*high > *low) || !isfinite(*high - *low))
        return call->does->fail(
            call, MR_EINVAL, "expected \"low\" < \"high\", got %g and %g", *low, *high);
    return MR_OK;
}

/* Computes out = x op y, where y is one number converted to the type of `out`. */
static int apply(struct mr_op_call *call, enum mr_binary op, const struct mr_tensor *x, double y,
    const struct mr_tensor *out)
{
    enum mr_dtype inner = out->dtype == MR_DTYPE_F16 ? MR_DTYPE_F32 : out->dtype;
    struct mr_tensor number;
    struct mr_tensor whole = *out;
    mr_tensor_init(&number, MR_DTYPE_F64, 0, NULL, &y);
    struct mr_tensor *both[2] = {&number, &whole};
    struct mr_loop l = {.count = 3, .kernel = mr_binary_kernel(op, inner)};
    int err = mr_array_broadcast(call, both, 2, &l.ndim, l.shape);
    if (err) return err;
    mr_loop_operand_set(&l, 0, x, inner);
    mr_loop_operand_set(&l, 1, &number, inner);
    mr_loop_operand_set(&l, 2, out, inner);
    return mr_loop_run(call, &l);
}

static int run_scale(struct mr_op_call *call)
{
    struct mr_tensor x;
    enum mr_dtype t = MR_DTYPE_NONE;
    double low = 0;
    double high = 1;
    int err = mr_array_tensor(call, &call->args[0], "x", &x);
    if (!err) err = mr_array_dtype(call, &call->args[3], "dtype", &t);
    if (!err) err = scale_bounds(call, x.dtype, &low, &high);
    if (err) return err;
    if (!mr_dtype_is_float(t))
        return call->does->fail(call, MR_EINVAL, "argument \"dtype\": expected f16, f32 or f64");
    void *data = call->does->return_tensor(call, t, x.ndim, x.shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, t, x.ndim, x.shape, data);
    if (low == 0) return apply(call, MR_DIV, &x, high, &out);
    err = apply(call, MR_SUB, &x, low, &out);
    return err ? err : apply(call, MR_DIV, &out, high - low, &out);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param encoded[] = {
    {"labels", MR_TAKES_ARRAY, NULL, "Labels: integers from 0 to classes - 1."},
    {"classes", MR_TAKES_INT, NULL, "Number of classes, 1 to 2^24."},
    {"dtype", MR_TAKES_TEXT, "\"f32\"", "Type of the result."},
};
static const struct mr_op_param scaled[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A tensor or a nested list of numbers."},
    {"low", MR_TAKES_REAL, "null", "The value that becomes 0; null: 0."},
    {"high", MR_TAKES_REAL, "null",
        "The value that becomes 1; null: the largest value of an integer type (u8: 255)."},
    {"dtype", MR_TAKES_TEXT, "\"f32\"", "Type of the result: f16, f32 or f64."},
};

const struct mr_op_desc *mr_array_encode_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("array.one_hot", D, encoded, 2000, run_one_hot, "tensor [labels…, classes]",
            "Makes one row for each label, with 1 in the column of the label; a label outside the "
            "classes is an error."),
        MR_OP_ROW("array.scale", D, scaled, 2000, run_scale, "tensor of floats",
            "Scales a range of values linearly to 0 … 1."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
