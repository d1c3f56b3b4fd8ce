/* Files that operators may not read, wherever the data roots are: the state of the cluster, its
 * tokens, secrets and keys (--deny-path). A file is recognised by its path and by its device and
 * inode. So a symbolic link, a hard link or a bind mount of the file is refused as well. */
#pragma once

#include "base/err.h"

#define MR_DENIED_MAX 64

struct mr_denied {
    /* Absolute paths. mr_denied_add has resolved the symbolic links in the part of the path that
     * existed at that time. */
    char *paths[MR_DENIED_MAX];
    char *whats[MR_DENIED_MAX]; /* name of each path for error texts: "the cluster's secret" */
    uint32_t count;
};

void mr_denied_fini(struct mr_denied *d);
/* Denies a file, or a directory with everything below it. The path need not exist yet. MR_EINVAL:
 * the path is too long, or has ".." in the part that does not exist. */
int mr_denied_add(struct mr_denied *d, const char *path, const char *what, struct mr_error *e);
/* Denies the file that each variable MILLRACE_…_FILE or MILLRACE_…_KEY names. Services started from
 * one shell have the paths of each other's secrets in these variables. */
int mr_denied_add_environment(struct mr_denied *d, struct mr_error *e);

/* If an absolute path is a denied path or lies below one, returns the name of that denied path.
 * NULL: the path is not denied. */
const char *mr_denied_path(const struct mr_denied *d, const char *path);
/* Does the same for an open file. Every file of /proc is denied too: its name is "a file of /proc".
 * NULL: the file is not denied. */
const char *mr_denied_file(const struct mr_denied *d, int fd);
