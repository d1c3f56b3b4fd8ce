/* Element types, and a view of typed elements in memory that another module owns. A view may have
 * any strides. A tensor in the extent of a value has strides that are not negative and stay inside
 * its data (mr_value_check). Plug-ins include this header, so it declares types and no
 * functions. */
#pragma once

#include "base/limits.h"

#include <stdint.h>

/* The numbers are part of the format of values and must never change. */
enum mr_dtype {
    MR_DTYPE_NONE = 0,
    MR_DTYPE_BOOL = 1, /* one byte, 0 or 1 */
    MR_DTYPE_I8 = 2,
    MR_DTYPE_I16 = 3,
    MR_DTYPE_I32 = 4,
    MR_DTYPE_I64 = 5,
    MR_DTYPE_U8 = 6,
    MR_DTYPE_U16 = 7,
    MR_DTYPE_U32 = 8,
    MR_DTYPE_U64 = 9,
    MR_DTYPE_F16 = 10, /* IEEE 754 binary16, stored in a uint16_t */
    MR_DTYPE_F32 = 11,
    MR_DTYPE_F64 = 12,
};
#define MR_DTYPES_COUNT 13 /* including NONE */

struct mr_tensor {
    enum mr_dtype dtype;
    unsigned ndim; /* number of axes; 0: one element without axes */
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    int64_t strides[MR_TENSOR_DIMS_MAX]; /* in bytes; multiples of the element's size */
    const void *data;                    /* address of the element at index (0, 0, …) */
};
