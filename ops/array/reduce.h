/* Reductions over a contiguous array seen as outer × n × inner: the reduced axes are joined into n.
 * A row is `inner` elements that follow each other. For each outer index, a kernel combines n rows
 * into one row of accumulators. A group is the n elements that become one element of the result.
 *
 * Kernels are fast on long rows. Where inner is small, several rows therefore count as one wide row
 * for the kernel, and the accumulators of the parts of the wide row are combined at the end. */
#pragma once

#include "ops/array/array.h"
#include "ops/kernel/reduce.h"

/* A tensor that is ready for a reduction: contiguous, f16 converted to f32, the axes in three
 * groups. */
struct mr_reduction {
    enum mr_dtype dtype;
    const char *data;
    uint64_t outer;
    uint64_t n;
    uint64_t inner;
    unsigned kept_ndim; /* number of the result's axes */
    uint64_t kept[MR_TENSOR_DIMS_MAX];
};

int mr_reduction_prepare(struct mr_op_call *call, const struct mr_tensor *x, uint32_t axes,
    bool keepdims, struct mr_reduction *out);

/* Allocates the result: scratch memory if the result is a number, otherwise its final place. */
int mr_reduction_result(struct mr_op_call *call, enum mr_dtype t, unsigned ndim,
    const uint64_t *shape, struct mr_tensor *out);
int mr_reduction_return(struct mr_op_call *call, const struct mr_tensor *out);

/* Moments of n groups. The mean of a group is mean + low, where `low` is the rounding error of
 * `mean`. m2 is the sum of squared deviations from the mean. */
struct mr_moments {
    double *mean, *low, *m2;
};

/* Computes the moments of each of the outer × inner groups, in one pass over the data. Rows are
 * summed in blocks, relative to the block's first row. Blocks are merged by the formula of Chan,
 * Golub and LeVeque (1983). The mean is an unevaluated sum of two doubles (TwoSum, Knuth), so a
 * mean far from 0 does not cost the deviations accuracy. */
int mr_reduce_moments(
    struct mr_op_call *call, const struct mr_reduction *r, const struct mr_moments *out);
/* Merges `b`, the moments of count_b rows, into `a`, the moments of count_a rows. */
void mr_moments_merge(double count_a, const struct mr_moments *a, double count_b,
    const struct mr_moments *b, size_t n);
