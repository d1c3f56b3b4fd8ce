/* Runs a kernel over strided operands of one shape. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/kernel/kernel.h"
#include "ops/op.h"
#include "store/object/tensor.h"

#define MR_LOOP_OPERANDS_MAX 4

struct mr_loop_operand {
    char *p;
    int64_t strides[MR_TENSOR_DIMS_MAX];
    enum mr_dtype stored; /* the dtype in memory */
    enum mr_dtype as;     /* the dtype that the kernel expects; elements are converted on the way */
};

struct mr_loop {
    unsigned ndim;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    unsigned count; /* number of operands, with the result */
    struct mr_loop_operand operand[MR_LOOP_OPERANDS_MAX];
    mr_kernel kernel;
};

/* Sets operand `i` to a tensor of the loop's shape (see mr_array_broadcast). */
void mr_loop_operand_set(
    struct mr_loop *l, unsigned i, const struct mr_tensor *t, enum mr_dtype as);
/* Runs the loop, and may change `l`. MR_ECANCELED: the task is cancelled. */
int mr_loop_run(struct mr_op_call *call, struct mr_loop *l);
