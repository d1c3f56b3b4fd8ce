/* The kernels of reductions. A kernel combines rows of `width` elements of a contiguous array with
 * `width` accumulators, so one kernel serves every shape. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "store/object/tensor.h"

enum mr_reduce {
    MR_REDUCE_SUM,
    MR_REDUCE_PROD,
    MR_REDUCE_MIN,
    MR_REDUCE_MAX,
    MR_REDUCE_ANY,
    MR_REDUCE_ALL,
    /* The reductions above have a kernel each; those below use these kernels or have kernels of
     * their own. */
    MR_REDUCE_KERNELS,
    MR_REDUCE_MEAN = MR_REDUCE_KERNELS,
    MR_REDUCE_VAR,
    MR_REDUCE_STD,
};

/* Combines rows × width elements with width accumulators. The accumulators' type is f64 for sums
 * and products of floats, i64 or u64 for those of integers, the dtype itself for min and max, and
 * bool for any and all. */
typedef void (*mr_rows_kernel)(const void *x, size_t rows, size_t width, void *accumulators);

mr_rows_kernel mr_reduce_kernel(enum mr_reduce op, enum mr_dtype t);
enum mr_dtype mr_reduce_accumulator(enum mr_reduce op, enum mr_dtype t);

/* Finds for each of `inner` columns the row (of n) with the smallest or the largest element, and
 * writes its index. `best` is working memory of `inner` elements. The first NaN wins, as in
 * NumPy. */
typedef void (*mr_arg_kernel)(const void *x, size_t n, size_t inner, void *best, int64_t *index);
mr_arg_kernel mr_argmin_kernel(enum mr_dtype t, bool max);

/* Adds x - shift to `sums`, and the square of x - shift to `squares`, column by column. */
typedef void (*mr_moments_kernel)(
    const void *x, size_t rows, size_t width, const double *shift, double *sums, double *squares);
mr_moments_kernel mr_moments_rows(enum mr_dtype t);
