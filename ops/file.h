/* Reading files beneath the data roots, for operators. All fail in words that name the path. */
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
/* Exactly n bytes at `offset`; stops when the task is cancelled. */
int mr_op_file_read(
    struct mr_op_call *call, const struct mr_op_file *f, uint64_t offset, void *p, uint64_t n);
/* The whole file, unpacked when it is gzipped: into `room`, to be mr_buf_fini'd, or memory of the
 * call. MR_ELIMIT past `room`'s ceiling. */
int mr_op_file_take_all(
    struct mr_op_call *call, const struct mr_op_file *f, struct mr_buf *room, struct mr_str *out);
/* The same of bytes; `path` empty: of an argument. */
int mr_op_unpack(struct mr_op_call *call, struct mr_str bytes, struct mr_str path,
    struct mr_buf *room, struct mr_str *out);
/* `n` is at most the file's rest; the bytes are scratch memory. */
int mr_op_file_take(struct mr_op_call *call, const struct mr_op_file *f, uint64_t offset,
    uint64_t n, struct mr_str *out);
