/* NumPy's file format (numpy.lib.format, versions 1 to 3). Reads C and Fortran order and both byte
 * orders; writes version 1 in C order and little endian. */
#pragma once

#include "store/object/format/format.h"

struct mr_npy_header {
    enum mr_dtype dtype;
    unsigned ndim;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    bool fortran; /* true: Fortran order, in which the first axis varies fastest */
    bool swapped; /* true: the elements are big endian */
    uint64_t data_offset;
    uint64_t data_bytes;
};

/* Reads the header from the first bytes of a file. MR_ERANGE: the header is longer than `bytes`;
 * data_offset then has the number of bytes that are needed. */
int mr_npy_header_read(struct mr_str bytes, struct mr_npy_header *out, struct mr_error *e);
/* Converts the h->data_bytes bytes of a file's elements to a row-major tensor in native byte order.
 * `data` may be `out` unless h->fortran, so a file can be read straight into the memory of the
 * tensor. */
void mr_npy_convert(const struct mr_npy_header *h, const void *data, void *out);

int mr_npy_import(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e);
int mr_npy_export(const struct mr_tensor *t, struct mr_sink sink, struct mr_error *e);
