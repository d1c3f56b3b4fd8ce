/* The element-wise kernels: casts, operations of one and of two operands, and the operation
 * "where". A kernel is a loop over elements of fixed dtypes. ops/kernel/strided_loop.h runs kernels
 * over tensors. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "store/object/tensor.h"

/* A kernel, which processes n elements. Operand i starts at p[i], and its elements are step[i]
 * bytes apart; the last operand is the result. */
typedef void (*mr_kernel)(char *const *p, size_t n, const ptrdiff_t *step);

/* Returns the kernel that converts between two dtypes. Floats become integers by truncation towards
 * zero, clamped to the range; NaN becomes 0. Integers keep their low bits. Anything other than 0
 * becomes true. */
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
    MR_EQ, /* MR_EQ to MR_GE are the comparisons */
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

/* Return the kernel of an operation. NULL: the operation is not defined for this dtype. f16 has no
 * kernels, because it is computed in f32. */
mr_kernel mr_binary_kernel(enum mr_binary op, enum mr_dtype t);
mr_kernel mr_unary_kernel(enum mr_unary op, enum mr_dtype t);
/* Returns the kernel of "where": operands of the types bool, t, t, and a result of the type t. */
mr_kernel mr_where_kernel(enum mr_dtype t);
