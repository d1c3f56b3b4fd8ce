/* NumPy's file format (numpy.lib.format, versions 1 to 3): both orders, both endiannesses are read;
 * version 1, row-major, little endian is written. */
#pragma once

#include "store/object/format/format.h"

struct mr_npy_header {
    enum mr_dtype dtype;
    unsigned ndim;
    uint64_t shape[MR_TENSOR_DIMS_MAX];
    bool fortran; /* the first axis varies fastest */
    bool swapped; /* big endian */
    uint64_t data_offset;
    uint64_t data_bytes;
};

/* From the first bytes of a file. MR_ERANGE: the header is longer than `bytes`; data_offset then
 * says how many are needed. */
int mr_npy_header_read(struct mr_str bytes, struct mr_npy_header *out, struct mr_error *e);
/* The file's elements, h->data_bytes of them, to a row-major tensor of ours. `data` and `out` may
 * be the same memory when !h->fortran: a file can be read straight into its extent. */
void mr_npy_convert(const struct mr_npy_header *h, const void *data, void *out);

int mr_npy_import(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e);
int mr_npy_export(const struct mr_tensor *t, struct mr_sink sink, struct mr_error *e);
