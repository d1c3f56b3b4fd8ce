/* What array operators share: arguments as arrays, type promotion, broadcasting. Types and rules
 * are NumPy's. The common type of two tensors is the smallest that holds both; that of i64 and u64
 * is f64. A plain number beside a tensor takes the tensor's type (NEP 50). Integers wrap. NaN
 * propagates. */
#pragma once

#include "ops/family.h"
#include "ops/file.h"
#include "ops/kernel/strided_loop.h"

/* A weak number gives way to the type of a tensor beside it. */
enum mr_weak { MR_WEAK_NO, MR_WEAK_INT, MR_WEAK_FLOAT };

struct mr_operand {
    struct mr_tensor t;
    enum mr_weak weak;
    /* Memory of the number, to which t.data points. NULL: the operand is a tensor or a list. */
    void *cell;
    const char *name; /* name of the parameter, for error texts */
};

/* ---- arguments (args.c); on failure each records an error text ---- */

/* Converts a tensor, a number or a nested list of numbers to an operand. */
int mr_array_operand(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_operand *out);
/* Converts a tensor, a number or a nested list of numbers to a tensor. A number becomes bool, i64,
 * u64 or f64. */
int mr_array_tensor(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_tensor *out);
/* Like mr_array_tensor, for an array that the caller casts. A list of integers from 0 to 2^64 - 1
 * becomes u64, not f64, so no digit is lost. */
int mr_array_tensor_exact(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_tensor *out);
int mr_array_shape(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned *ndim, uint64_t shape[MR_TENSOR_DIMS_MAX]);
int mr_array_dtype(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, enum mr_dtype *out);
/* Reads one axis of a tensor with `ndim` axes. A negative axis counts from the end. */
int mr_array_axis(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned ndim, unsigned *out);
/* Reads axes: null means all axes, otherwise an int or a list of ints. Sets `*out` to a mask with
 * the bit 1 << i for each axis i. */
int mr_array_axes(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned ndim, uint32_t *out);
int mr_arg_int(struct mr_op_call *call, const struct mr_arg *arg, const char *name, int64_t min,
    int64_t max, int64_t *out);
/* Returns the number of a BOOL, INT, UINT or FLOAT; 0 for other types. */
double mr_arg_f64(const struct mr_arg *arg);

/* ---- types (types.c) ---- */

enum mr_dtype mr_dtype_promote(enum mr_dtype a, enum mr_dtype b);
/* Returns the result type of a function such as exp. A float type stays. An integer type gives a
 * float type: 8 bits or a bool give f16, 16 bits give f32, and 32 or 64 bits give f64. */
enum mr_dtype mr_dtype_float_of(enum mr_dtype t);
/* Sets `*out` to the common type of the operands, and converts weak numbers to it. MR_ERANGE: a
 * number does not fit into the type. */
int mr_array_common(
    struct mr_op_call *call, struct mr_operand *operands, unsigned count, enum mr_dtype *out);
/* True: the number of type `from` at `p` fits the integer type `t`, or `t` is not an integer type.
 * A float is truncated towards zero first, as array.astype does; NaN does not fit. */
bool mr_array_number_fits(enum mr_dtype from, const void *p, enum mr_dtype t);
/* Broadcasts tensors in place to their common shape, `*ndim` and `shape`. The stride of a tensor is
 * 0 along each axis where the tensor repeats. */
int mr_array_broadcast(struct mr_op_call *call, struct mr_tensor *const *tensors, unsigned count,
    unsigned *ndim, uint64_t shape[MR_TENSOR_DIMS_MAX]);

/* ---- whole operators that several families use ---- */

/* Copies the elements of one view to another of the same shape, with a cast. */
int mr_array_cast(
    struct mr_op_call *call, const struct mr_tensor *from, const struct mr_tensor *to);

int mr_array_binary(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *a,
    const struct mr_arg *b, const char *a_name, const char *b_name);
int mr_array_unary(struct mr_op_call *call, enum mr_unary op, const struct mr_arg *a);
int mr_array_where(struct mr_op_call *call, const struct mr_arg *condition, const struct mr_arg *a,
    const struct mr_arg *b);
/* Computes a0 op a1 op a2 …, where the items are tensors, numbers or lists; count is at least 1. */
int mr_array_fold(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *items,
    uint32_t count, const char *name);
/* Reduces `x` over all axes by MR_ADD, MR_MUL, MR_MIN or MR_MAX, and returns the result. */
int mr_array_reduce_all(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *x);
int mr_array_clip(struct mr_op_call *call, const struct mr_arg *x, const struct mr_arg *low,
    const struct mr_arg *high);
/* Copies the elements of a strided view to `to`, in row-major order and without gaps. */
int mr_array_copy(struct mr_op_call *call, const struct mr_tensor *from, void *to);
/* Returns a view as the result: a number if it has no axes, otherwise a contiguous tensor. */
int mr_array_return(struct mr_op_call *call, const struct mr_tensor *t);
int mr_array_concat(
    struct mr_op_call *call, const struct mr_arg *parts, uint32_t count, int64_t axis);
/* Returns the tensor of an IDX file as the result. With `rows`, all axes but the first are joined
 * into one. */
int mr_array_read_idx(struct mr_op_call *call, const struct mr_op_file *f, bool rows);

/* ---- families of operators ---- */

const struct mr_op_desc *mr_elementwise_ops(uint32_t *count);
const struct mr_op_desc *mr_array_shape_ops(uint32_t *count);
const struct mr_op_desc *mr_array_reduce_ops(uint32_t *count);
const struct mr_op_desc *mr_array_moments_ops(uint32_t *count);
const struct mr_op_desc *mr_array_create_ops(uint32_t *count);
const struct mr_op_desc *mr_array_linalg_ops(uint32_t *count);
const struct mr_op_desc *mr_array_encode_ops(uint32_t *count);
