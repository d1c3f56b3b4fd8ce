/* Element types and views of tensors (tensor_type.h): their properties and operations. */
#pragma once

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "store/object/tensor_type.h"

#include <stdbool.h>

size_t mr_dtype_bytes(enum mr_dtype t);     /* bytes of one element; 0 for NONE */
const char *mr_dtype_name(enum mr_dtype t); /* "f32"; "none" */
/* Reads the name of an element type; NumPy's names such as "float32" and "int64" are accepted too.
 * MR_EINVAL: no type has this name. */
int mr_dtype_parse(struct mr_str name, enum mr_dtype *out);
/* True: a number from outside is an element type. NONE is not. */
bool mr_dtype_is_valid(unsigned v);
bool mr_dtype_is_float(enum mr_dtype t);
/* True for i8 to i64 and u8 to u64; bool is not an integer here. */
bool mr_dtype_is_integer(enum mr_dtype t);
bool mr_dtype_is_signed(enum mr_dtype t); /* true for i8 to i64 and for floats */

/* Makes a row-major view of `data`. The caller has checked the shape with mr_tensor_shape_check. */
void mr_tensor_init(struct mr_tensor *t, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    const void *data);

/* Computes the strides of a row-major tensor, in bytes. An axis of length 0 counts as 1, so nothing
 * overflows. */
void mr_tensor_strides(
    enum mr_dtype dtype, unsigned ndim, const uint64_t *shape, int64_t *strides_out);

/* Computes the elements and the bytes of a shape; either output may be NULL. MR_EINVAL: too many
 * axes, or no such element type. MR_ELIMIT: more bytes than an object may have. The limit holds for
 * the other axes even if one axis is 0, so that the product of any axes cannot overflow. */
int mr_tensor_shape_check(enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    uint64_t *elements, uint64_t *bytes, struct mr_error *e);

uint64_t mr_tensor_elements(const struct mr_tensor *t); /* 1 for a tensor without axes */
uint64_t mr_tensor_data_bytes(const struct mr_tensor *t);
/* True: the elements are row-major and without gaps. */
bool mr_tensor_is_contiguous(const struct mr_tensor *t);
bool mr_tensor_same_shape(const struct mr_tensor *a, const struct mr_tensor *b);

/* Returns item `i` along axis 0: a view with one axis less. `t` must have an axis, and i <
 * shape[0]. */
struct mr_tensor mr_tensor_row(const struct mr_tensor *t, uint64_t i);

/* Copies the elements of `t`, with any strides, to `out` in row-major order and without gaps. */
void mr_tensor_copy(const struct mr_tensor *t, void *out);

/* Returns the address of the element at `index`, which has ndim numbers. */
const void *mr_tensor_at(const struct mr_tensor *t, const uint64_t *index);
double mr_dtype_get_f64(enum mr_dtype t, const void *element);

/* Writes the type and the shape: "f32[60000,784]". A text that does not fit is cut and ends with
 * "…". */
#define MR_TENSOR_TEXT_MAX 400
void mr_tensor_text(
    enum mr_dtype dtype, unsigned ndim, const uint64_t *shape, char out[MR_TENSOR_TEXT_MAX]);

/* Convert between binary16 and wider floats, rounded to nearest even. NaN stays NaN; a number that
 * is too large becomes infinite. */
float mr_f16_to_f32(uint16_t h);
uint16_t mr_f16_from_f32(float f);
uint16_t mr_f16_from_f64(double d); /* rounds once, without binary32 in between */
