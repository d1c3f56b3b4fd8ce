/* The directories beneath which operators may read files (--data-root). Paths are resolved by the
 * kernel (openat2 with RESOLVE_BENEATH), so that neither ".." nor a symbolic link leads out. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "ops/denied_paths.h"

#define MR_ROOTS_MAX 16

struct mr_roots {
    char *paths[MR_ROOTS_MAX]; /* canonical */
    int fds[MR_ROOTS_MAX];
    uint32_t count;
    struct mr_denied denied; /* refused in every root; add with mr_denied_add */
};

void mr_roots_init(struct mr_roots *r);
void mr_roots_fini(struct mr_roots *r);
int mr_roots_add(struct mr_roots *r, const char *directory, struct mr_error *e);

/* A root that is denied itself would refuse every file: MR_EPERM with a sentence. */
int mr_roots_check(const struct mr_roots *r, struct mr_error *e);

/* Opens for reading. A relative path is looked up in every root in turn; an absolute one must lie
 * beneath a root. MR_ENOENT: no such file. MR_EPERM: it lies outside (the words name the path and
 * --data-root), it is denied, or its mode keeps it from this process. */
int mr_roots_open(const struct mr_roots *r, struct mr_str path, int *fd, struct mr_error *e);
