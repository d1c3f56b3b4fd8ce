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
    struct mr_denied denied; /* refused below every root; mr_denied_add adds to these */
};

void mr_roots_init(struct mr_roots *r);
void mr_roots_fini(struct mr_roots *r);
int mr_roots_add(struct mr_roots *r, const char *directory, struct mr_error *e);

/* Refuses a root that lies in a denied directory, because no file below it could be read. MR_EPERM
 * comes with an error text. */
int mr_roots_check(const struct mr_roots *r, struct mr_error *e);

/* Opens a file for reading. A relative path is looked up in each root in turn; an absolute path
 * must lie below a root. MR_ENOENT: there is no such file. MR_EPERM: the path lies outside the
 * roots, is denied, or its mode forbids this process to read it; the error text says which. */
int mr_roots_open(const struct mr_roots *r, struct mr_str path, int *fd, struct mr_error *e);
