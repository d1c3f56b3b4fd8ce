/* The directories below which operators may read files (--data-root). The kernel resolves paths
 * (openat2 with RESOLVE_BENEATH), so neither ".." nor a symbolic link leads outside. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "ops/denied_paths.h"

#define MR_ROOTS_MAX 16

struct mr_roots {
    char *paths[MR_ROOTS_MAX]; /* absolute paths with links resolved */
    int fds[MR_ROOTS_MAX];
    uint32_t count;
    /* files that are refused below every root; mr_denied_add adds to these */
    struct mr_denied denied;
};

void mr_roots_init(struct mr_roots *r);
void mr_roots_fini(struct mr_roots *r);
int mr_roots_add(struct mr_roots *r, const char *directory, struct mr_error *e);

/* Checks that no root lies in a denied directory, because no file below such a root could be read.
 * MR_EPERM: a root does; the error text names it. */
int mr_roots_check(const struct mr_roots *r, struct mr_error *e);

/* Opens a file for reading. A relative path is looked up in each root in turn; an absolute path
 * must lie below a root. MR_EINVAL: the path is empty or has a NUL. MR_ELIMIT: the path is too
 * long. MR_ENOENT: there is no such file. MR_EPERM: this process may not open the file, for example
 * because the path lies outside the roots or is denied; the error text says why. MR_EIO: any other
 * error. */
int mr_roots_open(const struct mr_roots *r, struct mr_str path, int *fd, struct mr_error *e);
