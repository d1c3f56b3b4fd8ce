/* A process claims a directory by an exclusive flock on it. Between mkdtemp and flock a new
 * directory has no lock, and a sweep may remove it. So the maker takes the lock, checks that the
 * directory is still there, and makes another one if it is gone. Processes sweep once, at their
 * start, so one or two tries are usual. The bound on the tries is for a base directory where no
 * lock is ever granted. */
#include "host/os/process_dir.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/defs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES_MAX 10000
#define DEPTH_FDS 16

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type == FTW_DP || type == FTW_D) {
        (void)rmdir(path);
    } else {
        (void)unlink(path);
    }
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, DEPTH_FDS, FTW_DEPTH | FTW_PHYS);
}

/* Opens and locks a directory, and returns its descriptor. -1: another process has the lock, or the
 * directory is gone, or its owner is not the user as whom this thread uses files (host/os/user.h).
 */
static int claim(const char *path)
{
    struct stat there, locked;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    bool is_ours = !fstat(fd, &locked) && locked.st_uid == (uid_t)setfsuid((uid_t)-1) &&
                   !flock(fd, LOCK_EX | LOCK_NB) && !lstat(path, &there) &&
                   there.st_ino == locked.st_ino && there.st_dev == locked.st_dev;
    if (is_ours) return fd;
    (void)close(fd);
    return -1;
}

int mr_process_dir_open(
    struct mr_process_dir *s, const char *base, const char *kind, struct mr_error *e)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        int n = snprintf(s->path, sizeof s->path, "%s/%s-XXXXXX", base, kind);
        mr_assert(n > 0 && (size_t)n < sizeof s->path);
        if (!mkdtemp(s->path)) {
            int saved = errno;
            s->path[0] = 0;
            return mr_fail(e, MR_EIO, "cannot make a directory \"%s/%s-XXXXXX\": %s", base, kind,
                strerror(saved));
        }
        s->lock_fd = claim(s->path);
        if (s->lock_fd >= 0) return MR_OK;
        (void)rmdir(s->path); /* fails if a sweep has removed the directory already */
    }
    s->path[0] = 0;
    return mr_fail(e, MR_EIO, "cannot lock a directory \"%s/%s-XXXXXX\"", base, kind);
}

void mr_process_dir_close(struct mr_process_dir *s)
{
    if (!s->path[0]) return;
    remove_tree(s->path);
    (void)close(s->lock_fd);
    *s = (struct mr_process_dir){0};
}

size_t mr_process_dir_sweep(const char *base, const char *kind)
{
    size_t count = 0, kind_bytes = strlen(kind);
    DIR *dir = opendir(base);
    if (!dir) return 0;
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        bool is_one = !strncmp(d->d_name, kind, kind_bytes) && d->d_name[kind_bytes] == '-' &&
                      strlen(d->d_name) == kind_bytes + sizeof "-XXXXXX" - 1;
        if (!is_one) continue;
        MR_AUTO(mr_free_ptr) char *path = mr_format("%s/%s", base, d->d_name);
        int fd = claim(path);
        if (fd < 0) continue;
        remove_tree(path);
        (void)close(fd);
        count++;
    }
    (void)closedir(dir);
    return count;
}
