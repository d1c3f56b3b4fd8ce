/* Reads whole files up to a limit, and copies whole directories. Writes files so that after a crash
 * a file has either its old or its new content. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

/* Appends the content of the file to `out`. MR_ENOENT: there is no such file. MR_EPERM: this
 * process may not read it. MR_EIO: reading failed. MR_ETOOBIG: `out` would have more than
 * out->bytes_max bytes. */
int mr_file_read(const char *path, struct mr_buf *out, struct mr_error *e);

/* Replaces the content of a file: writes a temporary file beside it, calls fsync, renames the
 * temporary file, and calls fsync for the directory. */
int mr_file_write(const char *path, struct mr_str bytes, mode_t mode, struct mr_error *e);

/* Reads a file with a token or a cluster secret, and appends its content to `out`. The file must
 * belong to the user of this process or to root, and must give its group and other users no rights.
 * Newlines at the end are removed. MR_EPERM: owner or mode are wrong. MR_EINVAL: the file is empty.
 * Other errors are those of mr_file_read. */
int mr_file_read_secret(const char *path, struct mr_buf *out, struct mr_error *e);

/* Returns the error code for an errno of a write: MR_EDISKFULL or MR_EIO. */
int mr_file_write_error(int number);

/* Makes a directory and its parents, like mkdir -p. */
int mr_file_make_dirs(const char *path, mode_t mode, struct mr_error *e);

/* Copies the files and directories beneath `from` to the directory `to`, which is made if it does
 * not exist. The copies have mode 0600 and 0700. Sockets, links and other special files are left
 * out. If another process appends to a file meanwhile, the copy may lack the last bytes.
 * MR_ENOENT: there is no directory `from`. MR_EIO, MR_EDISKFULL: the error text names the file. */
int mr_file_copy_tree(const char *from, const char *to, struct mr_error *e);

/* Returns the path of the program `name` in the directory of this process's program, to be freed
 * with mr_release. The program may not exist. */
char *mr_file_beside_program(const char *name);
