/* Tensors: what can be asked of element types and views (tensor_type.h). Knows nothing of stores,
 * formats or arithmetic. */
#pragma once

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "store/object/tensor_type.h"

#include <stdbool.h>

size_t mr_dtype_bytes(enum mr_dtype t);                     /* of one element; 0 for NONE */
const char *mr_dtype_name(enum mr_dtype t);                 /* "f32"; "none" */
int mr_dtype_parse(struct mr_str name, enum mr_dtype *out); /* also "float32", "int64", …;
                                                               MR_EINVAL */
bool mr_dtype_is_valid(unsigned v);                         /* a number from outside; not NONE */
bool mr_dtype_is_float(enum mr_dtype t);
bool mr_dtype_is_integer(enum mr_dtype t); /* bool is not one */
bool mr_dtype_is_signed(enum mr_dtype t);  /* i8-i64 and floats */

/* A row-major view of `data`. The shape has been checked: mr_tensor_shape_check. */
void mr_tensor_init(struct mr_tensor *t, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    const void *data);

/* Row-major strides of a shape, in bytes. Axes of length 0 count as 1, so nothing overflows. */
void mr_tensor_strides(
    enum mr_dtype dtype, unsigned ndim, const uint64_t *shape, int64_t *strides_out);

/* Elements and bytes of a shape, either may be NULL. MR_EINVAL: too many axes or no such dtype;
 * MR_ELIMIT: more bytes than an object may have. The limit holds even where another axis is 0, so
 * that products of any axes may be formed without a check. */
int mr_tensor_shape_check(enum mr_dtype dtype, unsigned ndim, const uint64_t *shape,
    uint64_t *elements, uint64_t *bytes, struct mr_error *e);

uint64_t mr_tensor_elements(const struct mr_tensor *t); /* 1 when ndim is 0 */
uint64_t mr_tensor_data_bytes(const struct mr_tensor *t);
bool mr_tensor_is_contiguous(const struct mr_tensor *t); /* row-major without gaps */
bool mr_tensor_same_shape(const struct mr_tensor *a, const struct mr_tensor *b);

/* Item `i` along axis 0: a view with one axis less. `t` has an axis, i < shape[0]. */
struct mr_tensor mr_tensor_row(const struct mr_tensor *t, uint64_t i);

/* The elements of `t`, of any strides, row-major and without gaps into `out`. */
void mr_tensor_copy(const struct mr_tensor *t, void *out);

/* One element at `index` (ndim numbers), widened. For the slow paths: text, tests, scalars. */
const void *mr_tensor_at(const struct mr_tensor *t, const uint64_t *index);
double mr_dtype_get_f64(enum mr_dtype t, const void *element);

/* "f32[60000,784]", cut with "…" where it does not fit. */
#define MR_TENSOR_TEXT_MAX 400
void mr_tensor_text(
    enum mr_dtype dtype, unsigned ndim, const uint64_t *shape, char out[MR_TENSOR_TEXT_MAX]);

/* binary16, round to nearest even; NaN stays NaN, what is too large becomes infinite. */
float mr_f16_to_f32(uint16_t h);
uint16_t mr_f16_from_f32(float f);
uint16_t mr_f16_from_f64(double d); /* one rounding, not two */
