/* What the families of array operators share: arguments as arrays, promotion of types,
 * broadcasting. Types and rules are NumPy's: of two tensors the smallest type that holds both,
 * where i64 with u64 is f64; a number beside a tensor does not widen it (NEP 50). Integers wrap;
 * NaN spreads. */
#pragma once

#include "ops/family.h"
#include "ops/file.h"
#include "ops/kernel/strided_loop.h"

enum mr_weak { MR_WEAK_NO, MR_WEAK_INT, MR_WEAK_FLOAT }; /* a number that takes the other's type */

struct mr_operand {
    struct mr_tensor t;
    enum mr_weak weak;
    void *cell;       /* the number itself, when weak: t.data points here */
    const char *name; /* of the parameter, for errors */
};

/* ---- arguments (args.c); each fails in words ---- */

/* A tensor, a number or a nested list of numbers as an array. */
int mr_array_operand(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_operand *out);
/* The same where the type is the array's own: a number becomes bool, i64, u64 or f64. */
int mr_array_tensor(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_tensor *out);
/* The same, to be cast: a list of integers from 0 to 2^64 - 1 keeps all their digits. */
int mr_array_tensor_exact(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_tensor *out);
int mr_array_shape(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned *ndim, uint64_t shape[MR_TENSOR_DIMS_MAX]);
int mr_array_dtype(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, enum mr_dtype *out);
/* One axis, negative ones from the end; `ndim` axes exist. */
int mr_array_axis(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned ndim, unsigned *out);
/* null: all axes; an int or a list of them. A bit per axis. */
int mr_array_axes(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    unsigned ndim, uint32_t *out);
int mr_arg_int(struct mr_op_call *call, const struct mr_arg *arg, const char *name, int64_t min,
    int64_t max, int64_t *out);
double mr_arg_f64(const struct mr_arg *arg); /* of BOOL, INT, UINT, FLOAT */

/* ---- types (types.c) ---- */

enum mr_dtype mr_dtype_promote(enum mr_dtype a, enum mr_dtype b);
enum mr_dtype mr_dtype_float_of(enum mr_dtype t); /* what exp of it gives: i8 is f16, i32 is f64 */
/* The common type of the operands, weak ones considered; their numbers are put into that type, or
 * refused when they do not fit. */
int mr_array_common(
    struct mr_op_call *call, struct mr_operand *operands, unsigned count, enum mr_dtype *out);
/* Whether a number of type `from` at `p` is one of `t`, when that is an integer type: floats are
 * cut towards zero first, as array.astype does, NaN is none. */
bool mr_array_number_fits(enum mr_dtype from, const void *p, enum mr_dtype t);
/* The common shape; operands' strides become 0 along axes they are spread over. */
int mr_array_broadcast(struct mr_op_call *call, struct mr_tensor *const *tensors, unsigned count,
    unsigned *ndim, uint64_t shape[MR_TENSOR_DIMS_MAX]);

/* ---- whole operators, for families that share them ---- */

/* Elements of one view into another of the same shape, cast. */
int mr_array_cast(
    struct mr_op_call *call, const struct mr_tensor *from, const struct mr_tensor *to);

int mr_array_binary(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *a,
    const struct mr_arg *b, const char *a_name, const char *b_name);
int mr_array_unary(struct mr_op_call *call, enum mr_unary op, const struct mr_arg *a);
int mr_array_where(struct mr_op_call *call, const struct mr_arg *condition, const struct mr_arg *a,
    const struct mr_arg *b);
/* a0 op a1 op a2 …: of tensors, numbers and lists, at least one. */
int mr_array_fold(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *items,
    uint32_t count, const char *name);
/* Over all axes, for MR_ADD, MR_MUL, MR_MIN, MR_MAX. */
int mr_array_reduce_all(struct mr_op_call *call, enum mr_binary op, const struct mr_arg *x);
int mr_array_clip(struct mr_op_call *call, const struct mr_arg *x, const struct mr_arg *low,
    const struct mr_arg *high);
/* Elements of any strides to `to`, row-major and without gaps. */
int mr_array_copy(struct mr_op_call *call, const struct mr_tensor *from, void *to);
/* A view as the result: a number when it has no axis, else a contiguous tensor. */
int mr_array_return(struct mr_op_call *call, const struct mr_tensor *t);
int mr_array_concat(
    struct mr_op_call *call, const struct mr_arg *parts, uint32_t count, int64_t axis);
/* The tensor in an IDX file as the result; with `rows`, what lies under one index of its first axis
 * as one row. */
int mr_array_read_idx(struct mr_op_call *call, const struct mr_op_file *f, bool rows);

/* ---- families of operators ---- */

const struct mr_op_desc *mr_elementwise_ops(uint32_t *count);
const struct mr_op_desc *mr_array_shape_ops(uint32_t *count);
const struct mr_op_desc *mr_array_reduce_ops(uint32_t *count);
const struct mr_op_desc *mr_array_moments_ops(uint32_t *count);
const struct mr_op_desc *mr_array_create_ops(uint32_t *count);
const struct mr_op_desc *mr_array_linalg_ops(uint32_t *count);
const struct mr_op_desc *mr_array_encode_ops(uint32_t *count);
