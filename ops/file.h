/* Reads files below the data roots, for operators. On failure each function records an error text
 * that names the path. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "ops/op.h"
#include "store/object/tensor.h"

struct mr_op_file {
    int fd;
    uint64_t bytes;
    struct mr_str path;
};

int mr_op_file_open(struct mr_op_call *call, struct mr_str path, struct mr_op_file *out);
void mr_op_file_close(struct mr_op_file *f);
/* Reads exactly n bytes at `offset`. MR_ECANCELED: the task is cancelled. */
int mr_op_file_read(
    struct mr_op_call *call, const struct mr_op_file *f, uint64_t offset, void *p, uint64_t n);
/* Reads the whole file; a gzipped file is decompressed. The bytes lie in `room` (the caller calls
 * mr_buf_fini) or in memory of the call. MR_ELIMIT: there are more bytes than room->bytes_max. */
int mr_op_file_take_all(
    struct mr_op_call *call, const struct mr_op_file *f, struct mr_buf *room, struct mr_str *out);
/* Decompresses `bytes` into `room` if they are gzipped, and sets `*out` to the result; otherwise
 * sets `*out` to `bytes`. `path` is for error texts; empty: the bytes were an argument. */
int mr_op_unpack(struct mr_op_call *call, struct mr_str bytes, struct mr_str path,
    struct mr_buf *room, struct mr_str *out);
/* Reads exactly n bytes at `offset` into scratch memory. The caller makes sure that the file has
 * these bytes. */
int mr_op_file_take(struct mr_op_call *call, const struct mr_op_file *f, uint64_t offset,
    uint64_t n, struct mr_str *out);
