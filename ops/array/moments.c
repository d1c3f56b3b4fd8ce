/* Mean, variance and standard deviation of an array and of a distributed array, which consists of
 * parts. A group is the elements that are reduced to one element of the result. The moments of a
 * part are an f64 tensor of shape [4, …]: for each group its count, mean, sum of squared deviations
 * (m2) and the low part of the mean (struct mr_moments). The moments of parts can be merged in any
 * order (Chan, Golub and LeVeque 1983). */
#include "ops/array/array.h"

#include "base/unconst.h"
#include "ops/array/reduce.h"

#include <math.h>

/* Rows of a moments tensor: count, mean, m2 and low part of the mean. */
#define ROWS 4

/* ---- of a whole array ---- */

static int groups_of(struct mr_op_call *call, uint32_t axis_at, bool keepdims,
    struct mr_reduction *r, enum mr_dtype *t)
{
    struct mr_tensor x;
    uint32_t axes = 0;
    int err = mr_array_tensor(call, &call->args[0], "x", &x);
    if (!err) err = mr_array_axes(call, &call->args[axis_at], "axis", x.ndim, &axes);
    if (err) return err;
    *t = mr_dtype_is_float(x.dtype) ? x.dtype : MR_DTYPE_F64;
    return mr_reduction_prepare(call, &x, axes, keepdims, r);
}

/* Converts m2 of n groups to variances, or with `root` to standard deviations. The divisor is the
 * count of the group - ddof. `counts` NULL: each group has `count` elements. */
static void finish(
    double *m2, const double *counts, double count, uint64_t n, double ddof, bool root)
{
    for (uint64_t i = 0; i < n; i++) {
        double left = (counts ? counts[i] : count) - ddof;
        double v = left > 0 ? m2[i] / left : m2[i] / 0.0;
        m2[i] = root ? sqrt(v) : v;
    }
}

static int spread(struct mr_op_call *call, bool root)
{
    struct mr_reduction r;
    enum mr_dtype t = MR_DTYPE_NONE;
    struct mr_tensor out;
    int err = groups_of(call, 1, call->args[3].boolean, &r, &t);
    if (!err) err = mr_reduction_result(call, t, r.kept_ndim, r.kept, &out);
    if (err) return err;
    uint64_t groups = r.outer * r.inner;
    double *memory = call->does->scratch(call, MR_MAX(groups, 1u) * 3 * sizeof *memory);
    if (!memory) return MR_ELIMIT;
    const struct mr_moments m = {memory, memory + groups, memory + 2 * groups};
    err = mr_reduce_moments(call, &r, &m);
    if (err) return err;
    finish(m.m2, NULL, (double)r.n, groups, mr_arg_f64(&call->args[2]), root);
    struct mr_tensor from;
    mr_tensor_init(&from, MR_DTYPE_F64, r.kept_ndim, r.kept, m.m2);
    err = mr_array_cast(call, &from, &out);
    return err ? err : mr_reduction_return(call, &out);
}

static int run_var(struct mr_op_call *call)
{
    return spread(call, false);
}

static int run_std(struct mr_op_call *call)
{
    return spread(call, true);
}

/* ---- of parts ---- */

/* Returns the rows of a moments tensor except the first, which has the counts. The tensor has n
 * groups. */
static struct mr_moments rows_of(double *partial, uint64_t n)
{
    return (struct mr_moments){.mean = partial + n, .m2 = partial + 2 * n, .low = partial + 3 * n};
}

static int run_moments(struct mr_op_call *call)
{
    struct mr_reduction r;
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = groups_of(call, 1, call->args[2].boolean, &r, &t);
    if (err) return err;
    if (r.kept_ndim == MR_TENSOR_DIMS_MAX)
        return call->does->fail(call, MR_ELIMIT, "the result would have too many axes");
    uint64_t shape[MR_TENSOR_DIMS_MAX] = {ROWS};
    memcpy(shape + 1, r.kept, r.kept_ndim * sizeof *shape);
    double *out = call->does->return_tensor(call, MR_DTYPE_F64, r.kept_ndim + 1, shape);
    if (!out) return MR_ELIMIT;
    uint64_t groups = r.outer * r.inner;
    for (uint64_t i = 0; i < groups; i++)
        out[i] = (double)r.n;
    const struct mr_moments m = rows_of(out, groups);
    return mr_reduce_moments(call, &r, &m);
}

/* Reads a moments tensor, which is a contiguous f64 tensor of shape [4, …]. */
static int partial_arg(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_tensor *out)
{
    int err = mr_array_tensor(call, arg, name, out);
    if (err) return err;
    if (out->dtype == MR_DTYPE_F64 && out->ndim && out->shape[0] == ROWS &&
        mr_tensor_is_contiguous(out))
        return MR_OK;
    char what[MR_TENSOR_TEXT_MAX];
    mr_tensor_text(out->dtype, out->ndim, out->shape, what);
    return call->does->fail(
        call, MR_EINVAL, "argument \"%s\": expected moments, f64[4,…], got %s", name, what);
}

static int run_merge(struct mr_op_call *call)
{
    const struct mr_arg *parts = call->rest;
    uint32_t count = call->rest_count;
    if (count == 1 && parts[0].type == MR_ARG_LIST && parts[0].count &&
        parts[0].items[0].type == MR_ARG_TENSOR) {
        count = parts[0].count;
        parts = parts[0].items;
    }
    struct mr_tensor first;
    int err = partial_arg(call, &parts[0], "parts", &first);
    if (err) return err;
    if (count == 1) return call->does->return_arg(call, &parts[0]);
    double *out = call->does->return_tensor(call, MR_DTYPE_F64, first.ndim, first.shape);
    if (!out) return MR_ELIMIT;
    mr_tensor_copy(&first, out);
    uint64_t n = mr_tensor_elements(&first) / ROWS;
    for (uint32_t i = 1; i < count; i++) {
        struct mr_tensor t;
        err = partial_arg(call, &parts[i], "parts", &t);
        if (err) return err;
        if (!mr_tensor_same_shape(&first, &t))
            return call->does->fail(call, MR_EINVAL, "the parts differ in shape");
        double *p = mr_unconst(t.data); /* the memory is only read */
        for (uint64_t j = 0; j < n; j++) {
            const struct mr_moments a = {&out[n + j], &out[3 * n + j], &out[2 * n + j]};
            const struct mr_moments b = {&p[n + j], &p[3 * n + j], &p[2 * n + j]};
            mr_moments_merge(out[j], &a, p[j], &b, 1);
            out[j] += p[j];
        }
    }
    return MR_OK;
}

/* Reads the argument "moments" and prepares the result. The result has the axes of the moments
 * without the first one, and the type that the argument "dtype" names. */
static int finished(struct mr_op_call *call, struct mr_tensor *moments, struct mr_tensor *out)
{
    enum mr_dtype t = MR_DTYPE_NONE;
    int err = partial_arg(call, &call->args[0], "moments", moments);
    if (!err) err = mr_array_dtype(call, &call->args[call->args_count - 1], "dtype", &t);
    if (!err && !mr_dtype_is_float(t))
        err = call->does->fail(call, MR_EINVAL, "argument \"dtype\": expected f16, f32 or f64");
    return err ? err : mr_reduction_result(call, t, moments->ndim - 1, moments->shape + 1, out);
}

static int return_row(struct mr_op_call *call, const double *row, const struct mr_tensor *out)
{
    struct mr_tensor from;
    mr_tensor_init(&from, MR_DTYPE_F64, out->ndim, out->shape, row);
    int err = mr_array_cast(call, &from, out);
    return err ? err : mr_reduction_return(call, out);
}

static int run_moments_mean(struct mr_op_call *call)
{
    struct mr_tensor m;
    struct mr_tensor out;
    int err = finished(call, &m, &out);
    if (err) return err;
    uint64_t n = mr_tensor_elements(&m) / ROWS;
    const double *p = m.data;
    double *means = call->does->scratch(call, MR_MAX(n, 1u) * sizeof *means);
    if (!means) return MR_ELIMIT;
    for (uint64_t i = 0; i < n; i++)
        means[i] = p[i] > 0 ? p[n + i] + p[3 * n + i] : (double)NAN;
    return return_row(call, means, &out);
}

static int moments_spread(struct mr_op_call *call, bool root)
{
    struct mr_tensor m;
    struct mr_tensor out;
    int err = finished(call, &m, &out);
    if (err) return err;
    uint64_t n = mr_tensor_elements(&m) / ROWS;
    const double *p = m.data;
    double *m2 = call->does->scratch(call, MR_MAX(n, 1u) * sizeof *m2);
    if (!m2) return MR_ELIMIT;
    memcpy(m2, p + 2 * n, n * sizeof *m2);
    finish(m2, p, 0, n, mr_arg_f64(&call->args[1]), root);
    return return_row(call, m2, &out);
}

static int run_moments_var(struct mr_op_call *call)
{
    return moments_spread(call, false);
}

static int run_moments_std(struct mr_op_call *call)
{
    return moments_spread(call, true);
}

#define D MR_OP_DETERMINISTIC
#define X_PARAM                                                                                    \
    {                                                                                              \
        "x", MR_TAKES_ARRAY, NULL, "A tensor or a nested list of numbers."                         \
    }
#define AXIS_PARAM                                                                                 \
    {                                                                                              \
        "axis", MR_TAKES_INT | MR_TAKES_LIST | MR_TAKES_NIL, "null",                               \
            "An axis or a list of axes; null: all axes."                                           \
    }
#define DDOF_PARAM                                                                                 \
    {                                                                                              \
        "ddof", MR_TAKES_REAL, "0", "Subtracted from the count in the divisor."                    \
    }
#define KEEP_PARAM                                                                                 \
    {                                                                                              \
        "keepdims", MR_TAKES_BOOL, "false", "Keep the reduced axes with length 1."                 \
    }
#define DTYPE_PARAM                                                                                \
    {                                                                                              \
        "dtype", MR_TAKES_TEXT, "\"f64\"", "Type of the result: f16, f32 or f64."                  \
    }
#define MOMENTS_PARAM                                                                              \
    {                                                                                              \
        "moments", MR_TAKES_TENSOR, NULL, "The result of array.moments or array.moments_merge."    \
    }

static const struct mr_op_param spreads[] = {X_PARAM, AXIS_PARAM, DDOF_PARAM, KEEP_PARAM};
static const struct mr_op_param moments[] = {X_PARAM, AXIS_PARAM, KEEP_PARAM};
static const struct mr_op_param merged[] = {
    {"parts", MR_TAKES_TENSOR | MR_TAKES_LIST, NULL, "Moments of parts, or one list of moments."},
};
static const struct mr_op_param means[] = {MOMENTS_PARAM, DTYPE_PARAM};
static const struct mr_op_param variances[] = {MOMENTS_PARAM, DDOF_PARAM, DTYPE_PARAM};

const struct mr_op_desc *mr_array_moments_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("array.var", D, spreads, 5000, run_var, "tensor or float",
            "Computes the variance over axes in f64, in one pass (Chan, Golub, LeVeque 1983)."),
        MR_OP_ROW("array.std", D, spreads, 5000, run_std, "tensor or float",
            "Computes the standard deviation over axes in f64, as array.var."),
        MR_OP_ROW("array.moments", D, moments, 5000, run_moments, "f64 tensor [4, …]",
            "Computes count, mean, sum of squared deviations and the mean's low part for one part "
            "of an array."),
        MR_OP_ROW("array.moments_merge", D | MR_OP_VARIADIC, merged, 5000, run_merge,
            "f64 tensor [4, …]",
            "Merges the moments of several parts (Chan, Golub, LeVeque 1983)."),
        MR_OP_ROW("array.moments_mean", D, means, 2000, run_moments_mean, "tensor or float",
            "Computes the mean from moments."),
        MR_OP_ROW("array.moments_var", D, variances, 2000, run_moments_var, "tensor or float",
            "Computes the variance from moments."),
        MR_OP_ROW("array.moments_std", D, variances, 2000, run_moments_std, "tensor or float",
            "Computes the standard deviation from moments."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
