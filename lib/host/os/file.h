/* Whole files: read up to a limit; written so that after a crash the file has either its old or its
 * new content. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* Appends the content of the file to `out`. MR_ENOENT, MR_EPERM, MR_ETOOBIG (more than the ceiling
 * of `out`), MR_EIO. */
int mr_file_read(const char *path, struct mr_buf *out, struct mr_error *e);

/* Replaces the file: writes a temporary file beside it, fsync, rename, fsync of the directory. */
int mr_file_write(const char *path, struct mr_str bytes, mode_t mode, struct mr_error *e);

/* Reads a file with a token or a cluster secret. Refused unless the file belongs to this user and
 * its mode is 0600 or stricter. A newline at the end is removed. */
int mr_file_read_secret(const char *path, struct mr_buf *out, struct mr_error *e);

/* The error code for an errno of a write: MR_EDISKFULL or MR_EIO. */
int mr_file_write_error(int number);

int mr_file_make_dirs(const char *path, mode_t mode, struct mr_error *e); /* like mkdir -p */
