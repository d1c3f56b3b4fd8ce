/* Operators that reduce arrays: array.sum … array.argmax. A distributed array is reduced in two
 * steps: array.reduce_partial reduces each part, and array.reduce_merge combines the results. */
#include "ops/array/array.h"

#include "base/assert.h"
#include "base/unconst.h"
#include "ops/array/reduce.h"

#include <math.h>

#define LANES 64
#define BLOCK_ROWS 512 /* rows that a sum of floats adds in one block */

static const char *const names[] = {"sum", "prod", "min", "max", "any", "all"};
static const enum mr_binary by[] = {MR_ADD, MR_MUL, MR_MIN, MR_MAX, MR_OR, MR_AND};

/* Initialises the accumulators. */
static void start(enum mr_reduce op, enum mr_dtype t, const char *first, size_t width, char *acc)
{
    size_t bytes = mr_dtype_bytes(t);
    if (op == MR_REDUCE_MIN || op == MR_REDUCE_MAX) {
        memcpy(acc, first, width * bytes);
        return;
    }
    memset(acc, op == MR_REDUCE_ALL ? 1 : 0, width * bytes);
    if (op != MR_REDUCE_PROD) return;
    for (size_t j = 0; j < width; j++) {
        if (t == MR_DTYPE_F64)
            ((double *)(void *)acc)[j] = 1;
        else
            ((uint64_t *)(void *)acc)[j] = 1;
    }
}

struct reducing {
    enum mr_reduce op;
    enum mr_dtype t;   /* type of the elements */
    enum mr_dtype acc; /* type of the accumulators */
    mr_rows_kernel kernel;
    mr_rows_kernel fold; /* the kernel that combines rows of accumulators with accumulators */
    char *block;         /* accumulators of one block */
    char *total;
};

/* Reduces n rows into `total`. Sums of floats are added block by block, which bounds the rounding
 * error (two-level summation). */
static int reduce_rows(
    struct mr_op_call *call, struct reducing *x, const char *rows, uint64_t n, size_t width)
{
    size_t row_bytes = width * mr_dtype_bytes(x->t);
    start(x->op, x->acc, rows, width, x->total);
    bool blocks = x->op == MR_REDUCE_SUM && x->acc == MR_DTYPE_F64;
    uint64_t block = blocks ? BLOCK_ROWS : MR_MAX(((uint64_t)1 << 22) / MR_MAX(row_bytes, 1u), 1u);
    for (uint64_t i = 0; i < n; i += block) {
        size_t count = (size_t)MR_MIN(n - i, block);
        char *into = blocks ? x->block : x->total;
        if (blocks) memset(into, 0, width * sizeof(double));
        x->kernel(rows + i * row_bytes, count, width, into);
        if (blocks) x->fold(into, 1, width, x->total);
        if (call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

/* Does the work of reduce_rows for few columns: several rows are taken as one wide row, whose
 * accumulators are combined at the end. */
static int reduce_narrow(
    struct mr_op_call *call, struct reducing *x, const char *rows, uint64_t n, size_t inner)
{
    size_t lanes = LANES / inner;
    uint64_t whole = n / lanes;
    if (!whole) return reduce_rows(call, x, rows, n, inner);
    int err = reduce_rows(call, x, rows, whole, lanes * inner);
    if (err) return err;
    x->fold(x->total + inner * mr_dtype_bytes(x->acc), lanes - 1, inner, x->total);
    const char *behind = rows + whole * lanes * inner * mr_dtype_bytes(x->t);
    x->kernel(behind, (size_t)(n % lanes), inner, x->total);
    return MR_OK;
}

#define SHORT_N 16

/* Reduces many short groups: combines the k-th elements of all groups in one loop, for each k. */
static int reduce_short(
    struct mr_op_call *call, enum mr_reduce op, const struct mr_reduction *r, char *out)
{
    enum mr_dtype t = mr_reduce_accumulator(op, r->dtype);
    ptrdiff_t width = (ptrdiff_t)mr_dtype_bytes(r->dtype);
    struct mr_tensor acc;
    struct mr_tensor x;
    mr_tensor_init(&acc, t, 1, &r->outer, out);
    mr_tensor_init(&x, r->dtype, 1, &r->outer, r->data);
    x.strides[0] = (int64_t)r->n * width;
    int err = mr_array_cast(call, &x, &acc);
    for (uint64_t k = 1; k < r->n && !err; k++) {
        struct mr_loop l = {
            .ndim = 1, .shape = {r->outer}, .count = 3, .kernel = mr_binary_kernel(by[op], t)};
        x.data = r->data + (ptrdiff_t)k * width;
        mr_loop_operand_set(&l, 0, &acc, t);
        mr_loop_operand_set(&l, 1, &x, t);
        mr_loop_operand_set(&l, 2, &acc, t);
        err = mr_loop_run(call, &l);
    }
    return err;
}

/* Reduces every group of `r` into `out`, whose elements have the accumulator's type. */
static int reduce_all(
    struct mr_op_call *call, enum mr_reduce op, const struct mr_reduction *r, char *out)
{
    if (r->inner == 1 && r->n && r->n <= SHORT_N && r->outer > SHORT_N)
        return reduce_short(call, op, r, out);
    struct reducing x = {.op = op, .t = r->dtype, .acc = mr_reduce_accumulator(op, r->dtype)};
    size_t inner = (size_t)r->inner;
    size_t width = MR_MAX(inner, (size_t)LANES);
    size_t acc_bytes = mr_dtype_bytes(x.acc);
    x.kernel = mr_reduce_kernel(op, x.t);
    x.fold = mr_reduce_kernel(op, x.acc);
    x.block = call->does->scratch(call, width * 8);
    x.total = call->does->scratch(call, width * 8);
    if (!x.block || !x.total) return MR_ELIMIT;
    for (uint64_t o = 0; o < r->outer; o++) {
        const char *rows = r->data + o * r->n * r->inner * mr_dtype_bytes(r->dtype);
        int err = inner && inner <= LANES / 2 ? reduce_narrow(call, &x, rows, r->n, inner)
                                              : reduce_rows(call, &x, rows, r->n, inner);
        if (err) return err;
        memcpy(out + o * inner * acc_bytes, x.total, inner * acc_bytes);
    }
    return MR_OK;
}

static enum mr_dtype result_type(enum mr_reduce op, enum mr_dtype t)
{
    if (op == MR_REDUCE_MEAN) return mr_dtype_is_float(t) ? t : MR_DTYPE_F64;
    if ((op == MR_REDUCE_SUM || op == MR_REDUCE_PROD) && mr_dtype_is_float(t)) return t;
    return mr_reduce_accumulator(op, t);
}

/* Divides sums by the count in f64, then converts to the result's type. */
static int finish_mean(struct mr_op_call *call, const struct mr_reduction *r,
    const struct mr_tensor *sums, const struct mr_tensor *out)
{
    uint64_t groups = r->outer * r->inner;
    double *means = call->does->scratch(call, MR_MAX(groups, 1u) * sizeof *means);
    if (!means) return MR_ELIMIT;
    struct mr_tensor m;
    mr_tensor_init(&m, MR_DTYPE_F64, r->kept_ndim, r->kept, means);
    int err = mr_array_cast(call, sums, &m);
    if (err) return err;
    for (uint64_t i = 0; i < groups; i++)
        means[i] = r->n ? means[i] / (double)r->n : (double)NAN;
    return mr_array_cast(call, &m, out);
}

/* Converts 64-bit integers to f64 for a mean, because their sum could overflow. */
static int widen(struct mr_op_call *call, enum mr_reduce op, struct mr_tensor *x)
{
    if (op != MR_REDUCE_MEAN || mr_dtype_is_float(x->dtype) || mr_dtype_bytes(x->dtype) < 8)
        return MR_OK;
    struct mr_tensor wide = *x;
    double *p = call->does->scratch(call, mr_tensor_elements(x) * sizeof *p + 8);
    if (!p) return MR_ELIMIT;
    mr_tensor_init(&wide, MR_DTYPE_F64, x->ndim, x->shape, p);
    int err = mr_array_cast(call, x, &wide);
    *x = wide;
    return err;
}

/* Reduces over axes into the result of the call. With `partial` the result has the accumulator's
 * type, without it the type of the operator's result. */
static int reduce(struct mr_op_call *call, enum mr_reduce op, struct mr_tensor x, uint32_t axes,
    bool keepdims, bool partial)
{
    struct mr_reduction r;
    struct mr_tensor out;
    enum mr_reduce kernel = op == MR_REDUCE_MEAN ? MR_REDUCE_SUM : op;
    enum mr_dtype t = partial ? mr_reduce_accumulator(op, x.dtype) : result_type(op, x.dtype);
    int err = widen(call, op, &x);
    if (!err) err = mr_reduction_prepare(call, &x, axes, keepdims, &r);
    if (err) return err;
    uint64_t groups = r.outer * r.inner;
    if (!r.n && (op == MR_REDUCE_MIN || op == MR_REDUCE_MAX))
        return call->does->fail(call, MR_EINVAL, "there is no %s of no elements", names[op]);
    err = mr_reduction_result(call, t, r.kept_ndim, r.kept, &out);
    if (err) return err;
    enum mr_dtype acc = mr_reduce_accumulator(kernel, r.dtype);
    bool direct = acc == t && op != MR_REDUCE_MEAN;
    char *sums = direct ? (char *)mr_unconst(out.data)
                        : call->does->scratch(call, MR_MAX(groups, 1u) * sizeof(uint64_t));
    if (!sums) return MR_ELIMIT;
    err = reduce_all(call, kernel, &r, sums);
    if (err) return err;
    struct mr_tensor from;
    mr_tensor_init(&from, acc, r.kept_ndim, r.kept, sums);
    if (op == MR_REDUCE_MEAN) err = finish_mean(call, &r, &from, &out);
    if (op != MR_REDUCE_MEAN && !direct) err = mr_array_cast(call, &from, &out);
    return err ? err : mr_reduction_return(call, &out);
}

int mr_array_reduce_all(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *x)
{
    struct mr_tensor t;
    int err = mr_array_tensor(call, x, "x", &t);
    enum mr_reduce r = op == MR_MUL   ? MR_REDUCE_PROD
                       : op == MR_MIN ? MR_REDUCE_MIN
                       : op == MR_MAX ? MR_REDUCE_MAX
                                      : MR_REDUCE_SUM;
    return err ? err : reduce(call, r, t, (1u << t.ndim) - 1, false, false);
}

/* ---- the operators ---- */

/* Reads the arguments x (the first one), axis (at axis_at) and keepdims (after axis). */
static int common_args(
    struct mr_op_call *call, uint32_t axis_at, struct mr_tensor *x, uint32_t *axes, bool *keepdims)
{
    int err = mr_array_tensor(call, &call->args[0], "x", x);
    if (err) return err;
    *keepdims = call->args[axis_at + 1].boolean;
    return mr_array_axes(call, &call->args[axis_at], "axis", x->ndim, axes);
}

static int run_reduce(struct mr_op_call *call, enum mr_reduce op)
{
    struct mr_tensor x;
    uint32_t axes = 0;
    bool keepdims = false;
    int err = common_args(call, 1, &x, &axes, &keepdims);
    return err ? err : reduce(call, op, x, axes, keepdims, false);
}

#define REDUCE_RUN(name, op)                                                                       \
    static int run_##name(struct mr_op_call *call)                                                 \
    {                                                                                              \
        return run_reduce(call, op);                                                               \
    }
REDUCE_RUN(sum, MR_REDUCE_SUM)
REDUCE_RUN(prod, MR_REDUCE_PROD)
REDUCE_RUN(min, MR_REDUCE_MIN)
REDUCE_RUN(max, MR_REDUCE_MAX)
REDUCE_RUN(any, MR_REDUCE_ANY)
REDUCE_RUN(all, MR_REDUCE_ALL)
REDUCE_RUN(mean, MR_REDUCE_MEAN)

/* The result is the index of an extreme along one axis, or in the flattened array. */
static int arg_extreme(struct mr_op_call *call, bool max)
{
    struct mr_tensor x;
    uint32_t axes = 0;
    bool keepdims = false;
    struct mr_reduction r;
    struct mr_tensor out;
    int err = common_args(call, 1, &x, &axes, &keepdims);
    if (!err) err = mr_reduction_prepare(call, &x, axes, keepdims, &r);
    if (err) return err;
    if (!r.n)
        return call->does->fail(
            call, MR_EINVAL, "there is no %s of no elements", max ? "max" : "min");
    err = mr_reduction_result(call, MR_DTYPE_I64, r.kept_ndim, r.kept, &out);
    if (err) return err;
    void *best = call->does->scratch(call, MR_MAX(r.inner, 1u) * 8);
    if (!best) return MR_ELIMIT;
    int64_t *index = mr_unconst(out.data);
    mr_arg_kernel kernel = mr_argmin_kernel(r.dtype, max);
    for (uint64_t o = 0; r.inner && o < r.outer; o++) {
        kernel(r.data + o * r.n * r.inner * mr_dtype_bytes(r.dtype), (size_t)r.n, (size_t)r.inner,
            best, index + o * r.inner);
        if (call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
    }
    return mr_reduction_return(call, &out);
}

static int run_argmin(struct mr_op_call *call)
{
    return arg_extreme(call, false);
}

static int run_argmax(struct mr_op_call *call)
{
    return arg_extreme(call, true);
}

/* ---- distributed arrays ---- */

static int reduce_op(struct mr_op_call *call, const struct mr_arg *arg, enum mr_reduce *out)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        *out = (enum mr_reduce)i;
        if (mr_str_eq(arg->bytes, mr_str(names[i]))) return MR_OK;
    }
    return call->does->fail(call, MR_EINVAL,
        "argument \"op\": expected sum, prod, min, max, any or all, got \"%.*s\"",
        (int)MR_MIN(arg->bytes.n, 40u), arg->bytes.p);
}

static int run_partial(struct mr_op_call *call)
{
    struct mr_tensor x;
    enum mr_reduce op = MR_REDUCE_SUM;
    uint32_t axes = 0;
    bool keepdims = false;
    int err = reduce_op(call, &call->args[1], &op);
    if (!err) err = common_args(call, 2, &x, &axes, &keepdims);
    return err ? err : reduce(call, op, x, axes, keepdims, true);
}

static int run_merge(struct mr_op_call *call)
{
    enum mr_reduce op = MR_REDUCE_SUM;
    int err = reduce_op(call, &call->args[0], &op);
    if (err) return err;
    const struct mr_arg *parts = &call->args[1];
    if (!parts->count) return call->does->fail(call, MR_EINVAL, "needs one part at least");
    return mr_array_fold(call, by[op], parts->items, parts->count, "parts");
}

#define D MR_OP_DETERMINISTIC
#define REDUCED                                                                                    \
    {"axis", MR_TAKES_INT | MR_TAKES_LIST | MR_TAKES_NIL, "null",                                  \
        "An axis or a list of axes; null: all axes."},                                             \
    {                                                                                              \
        "keepdims", MR_TAKES_BOOL, "false", "Keep the reduced axes with length 1."                 \
    }

static const struct mr_op_param reduced[] = {
    {"x", MR_TAKES_ARRAY, NULL, "A tensor or a nested list of numbers."},
    REDUCED,
};
static const struct mr_op_param partial[] = {
    {"x", MR_TAKES_ARRAY, NULL, "One part of the array."},
    {"op", MR_TAKES_TEXT, NULL, "The reduction: sum, prod, min, max, any or all."},
    REDUCED,
};
static const struct mr_op_param merged[] = {
    {"op", MR_TAKES_TEXT, NULL, "The reduction that made the parts."},
    {"parts", MR_TAKES_LIST, NULL, "Results of array.reduce_partial or of array.reduce_merge."},
};

#define ROW(name, result, summary)                                                                 \
    MR_OP_ROW("array." #name, D, reduced, 5000, run_##name, result, summary)

const struct mr_op_desc *mr_array_reduce_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        ROW(sum, "tensor or number",
            "Sums over axes; floats are added in f64, integers in 64 bits, where overflow wraps."),
        ROW(prod, "tensor or number", "Multiplies over axes; types are as in array.sum."),
        ROW(min, "tensor or number",
            "Takes the smallest element over axes; NaN if an element is NaN; no elements are an error."),
        ROW(max, "tensor or number",
            "Takes the largest element over axes; NaN if an element is NaN; no elements are an error."),
        ROW(any, "tensor of bools or bool", "Tests whether any element is not zero."),
        ROW(all, "tensor of bools or bool", "Tests whether all elements are not zero."),
        ROW(mean, "tensor or number",
            "Computes the mean over axes; the mean of no elements is NaN."),
        ROW(argmin, "tensor of i64 or int",
            "Finds the index of the first smallest element along axes; the first NaN wins."),
        ROW(argmax, "tensor of i64 or int",
            "Finds the index of the first largest element along axes; the first NaN wins."),
        MR_OP_ROW("array.reduce_partial", D, partial, 5000, run_partial, "tensor or number",
            "Reduces one part of an array, for array.reduce_merge; sums stay in f64 or 64-bit "
            "integers."),
        MR_OP_ROW("array.reduce_merge", D, merged, 5000, run_merge, "tensor or number",
            "Merges the reductions of parts."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
