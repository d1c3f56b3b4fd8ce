/* Reductions over a contiguous array seen as outer × n × inner: the axes that go are joined into n.
 * Kernels add rows of `width` elements into as many accumulators, so that one kernel serves every
 * shape: where inner is small, several rows count as one wide row and its lanes are folded last. */
#pragma once

#include "ops/array/array.h"
#include "ops/kernel/reduce.h"

/* A tensor made ready: contiguous, f16 as f32, its axes in three groups. */
struct mr_reduction {
    enum mr_dtype dtype;
    const char *data;
    uint64_t outer;
    uint64_t n;
    uint64_t inner;
    unsigned kept_ndim; /* the result's axes */
    uint64_t kept[MR_TENSOR_DIMS_MAX];
};

int mr_reduction_prepare(struct mr_op_call *call, const struct mr_tensor *x, uint32_t axes,
    bool keepdims, struct mr_reduction *out);

/* Where the result goes: in scratch when it will be a number, else in place. */
int mr_reduction_result(struct mr_op_call *call, enum mr_dtype t, unsigned ndim,
    const uint64_t *shape, struct mr_tensor *out);
int mr_reduction_return(struct mr_op_call *call, const struct mr_tensor *out);

/* Of n groups each: mean + low is the mean (low: what the double nearest to it leaves), m2 the sum
 * of squared deviations from it. */
struct mr_moments {
    double *mean, *low, *m2;
};

/* The moments of each of outer × inner groups, one pass over the data: blocks of rows around their
 * first row, merged as Chan, Golub and LeVeque (1983) show, with the mean as an unevaluated sum of
 * two doubles (Knuth's TwoSum), so that a mean far from 0 costs the deviations nothing. */
int mr_reduce_moments(
    struct mr_op_call *call, const struct mr_reduction *r, const struct mr_moments *out);
/* `b`, of count_b rows, into `a`, of count_a. */
void mr_moments_merge(double count_a, const struct mr_moments *a, double count_b,
    const struct mr_moments *b, size_t n);
