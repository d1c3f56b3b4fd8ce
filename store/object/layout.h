/* Private to the builders of this folder (tables, collections, formats): writes the header of a
 * value and allocates its extent. Other files use value.h. */
#pragma once

#include "store/object/value.h"

#define MR_VALUE_HEADER_BYTES_MAX (64 + 2 * 8 * MR_TENSOR_DIMS_MAX)

struct mr_value_frame {
    enum mr_value_kind kind;
    enum mr_dtype dtype;
    unsigned ndim;
    const uint64_t *shape;
    uint64_t data_bytes;
    uint64_t meta_offset; /* offset of the metadata, which follow the data; a multiple of 64 */
    uint64_t meta_bytes;
};

uint64_t mr_value_data_offset(enum mr_value_kind kind, unsigned ndim);

/* Writes the header, the shape, the strides and the padding up to the data. */
void mr_value_write_header(void *extent, const struct mr_value_frame *f);

/* Allocates an extent. MR_ELIMIT: there is no room, or `bytes` is 0. The size functions return 0
 * for values that are too large or not allowed. */
int mr_value_take(
    const struct mr_value_alloc *a, uint64_t bytes, void **extent_out, struct mr_error *e);
