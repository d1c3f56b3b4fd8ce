/* Whole files: read with a limit, written so that a crash leaves the old or the new one. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* Appends the file to `out`. MR_ENOENT, MR_EPERM, MR_ETOOBIG (over the ceiling of `out`), MR_EIO.
 */
int mr_file_read(const char *path, struct mr_buf *out, struct mr_error *e);

/* A temporary beside it, fsync, rename, fsync of the directory. */
int mr_file_write(const char *path, struct mr_str bytes, mode_t mode, struct mr_error *e);

/* A secret (token, cluster secret): as mr_file_read, refused unless it is ours and mode 0600 or
 * less; the final newline is cut. */
int mr_file_read_secret(const char *path, struct mr_buf *out, struct mr_error *e);

/* What an errno of a write means: MR_EDISKFULL, or MR_EIO. */
int mr_file_write_error(int number);

int mr_file_make_dirs(const char *path, mode_t mode, struct mr_error *e); /* like mkdir -p */
