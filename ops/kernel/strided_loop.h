/* The loop that runs a kernel over strided operands of one shape, and the kernels there are. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/op.h"
#include "store/object/tensor.h"

/* ---- loops (strided_loop.c) ---- */

#define MR_LOOP_OPERANDS_MAX 4

/* n elements of each operand, `step` bytes apart; the last is the result. */
typedef void (*mr_kernel)(char *const *p, size_t n, const ptrdiff_t *step);

struct mr_loop_operand {
    char *p;
    int64_t strides[MR_TENSOR_DIMS_MAX];
    enum mr_dtype stored; /* as it lies in memory */
    enum mr_dtype as;     /* as the kernel wants it: cast on the way */
};

struct mr_loop {
    unsigned ndim;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    unsigned count; /* of operands, the result included */
    struct mr_loop_operand operand[MR_LOOP_OPERANDS_MAX];
    mr_kernel kernel;
};

/* Fills operand `i` from a tensor that has the loop's shape (mr_array_broadcast). */
void mr_loop_operand_set(
    struct mr_loop *l, unsigned i, const struct mr_tensor *t, enum mr_dtype as);
/* MR_ECANCELED, in words, when the task is cancelled meanwhile. */
int mr_loop_run(struct mr_op_call *call, struct mr_loop *l);

/* ---- kernels (cast.c, kernel_*.c) ---- */

/* From one type to another: floats to integers are cut towards zero and held to the range, NaN is
 * 0; integers keep their low bits; to bool: not zero. */
mr_kernel mr_cast_kernel(enum mr_dtype from, enum mr_dtype to);

enum mr_binary {
    MR_ADD,
    MR_SUB,
    MR_MUL,
    MR_DIV,
    MR_FLOOR_DIV,
    MR_MOD,
    MR_POW,
    MR_MIN,
    MR_MAX,
    MR_EQ,
    MR_NE,
    MR_LT,
    MR_LE,
    MR_GT,
    MR_GE,
    MR_AND,
    MR_OR,
    MR_XOR,
    MR_BINARIES_COUNT,
};
enum mr_unary {
    MR_ABS,
    MR_NEG,
    MR_SIGN,
    MR_SQUARE,
    MR_SQRT,
    MR_RECIPROCAL,
    MR_EXP,
    MR_EXPM1,
    MR_LOG,
    MR_LOG1P,
    MR_LOG2,
    MR_LOG10,
    MR_SIN,
    MR_COS,
    MR_TAN,
    MR_TANH,
    MR_SIGMOID,
    MR_FLOOR,
    MR_CEIL,
    MR_TRUNC,
    MR_ROUND,
    MR_ISNAN,
    MR_ISINF,
    MR_ISFINITE,
    MR_NOT,
    MR_UNARIES_COUNT,
};

/* NULL: not for this type. There are none for f16, which is computed in f32. */
mr_kernel mr_binary_kernel(enum mr_binary op, enum mr_dtype t);
mr_kernel mr_unary_kernel(enum mr_unary op, enum mr_dtype t);
mr_kernel mr_where_kernel(enum mr_dtype t); /* bool, t, t -> t */
