/* What operators may not read wherever the data roots are: the cluster's state, its tokens, secrets
 * and keys (--deny-path). A file counts as one of these by its path, and by its device and inode:
 * a link, a hard link or a bind mount of it is refused as well. */
#pragma once

#include "base/err.h"

#define MR_DENIED_MAX 64

struct mr_denied {
    char *paths[MR_DENIED_MAX]; /* absolute, canonical as far as they exist */
    char *whats[MR_DENIED_MAX]; /* what each is: "the cluster's secret" */
    uint32_t count;
};

void mr_denied_fini(struct mr_denied *d);
/* A file or a directory with all beneath it. It need not exist yet. */
int mr_denied_add(struct mr_denied *d, const char *path, const char *what, struct mr_error *e);
/* The file named by each variable MILLRACE_…_FILE and MILLRACE_…_KEY: services that share a
 * shell share their secrets' places. */
int mr_denied_add_environment(struct mr_denied *d, struct mr_error *e);

/* What an absolute path lies in; NULL: in nothing that is denied. */
const char *mr_denied_path(const struct mr_denied *d, const char *path);
/* The same of an open file. */
const char *mr_denied_file(const struct mr_denied *d, int fd);
