/* IDX, the format of MNIST (yann.lecun.com/exdb/mnist): a short header and an array of big-endian
 * elements, often gzipped. No more is unpacked than the header says. */
#pragma once

#include "store/object/format/format.h"

struct mr_idx_header {
    enum mr_dtype dtype; /* u8, i8, i16, i32, f32, f64 */
    unsigned ndim;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    uint64_t data_offset;
    uint64_t data_bytes;
};

bool mr_idx_is_gzip(struct mr_str bytes);
/* Reads the header from `bytes`, the start of a file that is not gzipped or was unpacked.
 * MR_ERANGE: the header is longer than `bytes`. */
int mr_idx_header_read(struct mr_str bytes, struct mr_idx_header *out, struct mr_error *e);
/* Converts the elements of a file to native byte order; `data` may be `out`. */
void mr_idx_convert(const struct mr_idx_header *h, const void *data, void *out);

/* Flattens the shape to two axes: [n, the product of all other axes]. */
void mr_idx_header_flatten(struct mr_idx_header *h);

int mr_idx_import(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e);
int mr_idx_import_rows(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e);
/* Writes a plain file, not a gzipped one. */
int mr_idx_export(const struct mr_tensor *t, struct mr_sink sink, struct mr_error *e);
