/* Recognises the files that operators may not read (denied_paths.h). Each check asks the file
 * system for the denied paths again, because a token file may be replaced while the cluster runs.
 */
#include "ops/denied_paths.h"

#include "base/alloc.h"
#include "base/unconst.h"

#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

void mr_denied_fini(struct mr_denied *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        mr_release(d->paths[i]);
        mr_release(d->whats[i]);
    }
    *d = (struct mr_denied){0};
}

/* True: one of the components is "..". */
static bool goes_back(const char *path)
{
    for (const char *p = strstr(path, ".."); p; p = strstr(p + 1, ".."))
        if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/')) return true;
    return false;
}

/* Returns the absolute path. Symbolic links are resolved in the part of the path that exists. The
 * rest may be created later. NULL: the path is too long, or the rest has "..", so where the path
 * will lead is not known. */
static char *canonical(const char *path)
{
    char full[PATH_MAX], there[PATH_MAX], here[PATH_MAX];
    if (path[0] == '/' || !getcwd(here, sizeof here)) here[0] = 0;
    int n = snprintf(full, sizeof full, "%s%s%s", here, here[0] ? "/" : "", path);
    if (n < 0 || (size_t)n >= sizeof full) return NULL;
    const char *rest = full + n; /* the part that does not exist */
    while (!realpath(full[0] ? full : "/", there)) {
        char *slash = strrchr(full, '/');
        if (!slash) return NULL;
        if (rest < full + n) full[strlen(full)] = '/';
        *slash = 0;
        rest = slash + 1;
    }
    if (goes_back(rest)) return NULL;
    if (!*rest) return mr_copy_text(there);
    return mr_format("%s/%s", strcmp(there, "/") == 0 ? "" : there, rest);
}

int mr_denied_add(struct mr_denied *d, const char *path, const char *what, struct mr_error *e)
{
    if (d->count == MR_DENIED_MAX)
        return mr_fail(e, MR_ELIMIT, "--deny-path %s: at most %d are allowed", path, MR_DENIED_MAX);
    char *full = path[0] ? canonical(path) : NULL;
    if (!full) return mr_fail(e, MR_EINVAL, "--deny-path \"%s\": not a path", path);
    d->paths[d->count] = full;
    d->whats[d->count++] = mr_copy_text(what);
    return MR_OK;
}

int mr_denied_add_environment(struct mr_denied *d, struct mr_error *e)
{
    static const char prefix[] = "MILLRACE_", ending[] = "_FILE", key[] = "_KEY";
    for (char **v = environ; v && *v; v++) {
        const char *equals = strchr(*v, '=');
        if (!equals || !equals[1] || strncmp(*v, prefix, sizeof prefix - 1) != 0) continue;
        size_t n = (size_t)(equals - *v);
        bool is_file = n > sizeof prefix + sizeof ending - 2 &&
                       !memcmp(equals - (sizeof ending - 1), ending, sizeof ending - 1);
        bool is_key = n > sizeof prefix + sizeof key - 2 &&
                      !memcmp(equals - (sizeof key - 1), key, sizeof key - 1);
        if (!is_file && !is_key) continue;
        MR_AUTO(mr_free_ptr) char *what = mr_format("what %.*s names", (int)n, *v);
        int err = mr_denied_add(d, equals + 1, what, e);
        if (err) return err;
    }
    return MR_OK;
}

const char *mr_denied_path(const struct mr_denied *d, const char *path)
{
    for (uint32_t i = 0; i < d->count; i++) {
        size_t n = strlen(d->paths[i]);
        if (strncmp(d->paths[i], path, n) == 0 && (path[n] == '/' || !path[n])) return d->whats[i];
    }
    return NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool tree_holds(const char *directory, const struct stat *st)
{
    char *roots[] = {mr_unconst(directory), NULL}; /* drops const: fts does not write to the path */
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    bool found = false;
    for (FTSENT *f = tree ? fts_read(tree) : NULL; f && !found; f = fts_read(tree))
        found = f->fts_info != FTS_NS && f->fts_statp && is_same(f->fts_statp, st);
    if (tree) (void)fts_close(tree);
    return found;
}

static uint64_t mount_of(int fd, const char *path)
{
    struct statx x = {0};
    int flags = path ? 0 : AT_EMPTY_PATH;
    if (statx(path ? AT_FDCWD : fd, path ? path : "", flags, STATX_MNT_ID, &x)) return 0;
    return x.stx_mask & STATX_MNT_ID ? x.stx_mnt_id : 0;
}

/* True: the open file is `denied`, or lies in the directory `denied`. A file in a denied directory
 * can be opened under a path outside it in two cases: the file has several hard links, or the
 * directory (or a part of it) is mounted twice. The directory is searched in these cases only. */
static bool is_in(const char *denied, int fd, const struct stat *st)
{
    struct stat there;
    if (stat(denied, &there) || there.st_dev != st->st_dev) return false;
    if (is_same(&there, st)) return true;
    if (!S_ISDIR(there.st_mode)) return false;
    bool has_names = S_ISREG(st->st_mode) && st->st_nlink > 1;
    return (has_names || mount_of(fd, NULL) != mount_of(-1, denied)) && tree_holds(denied, st);
}

/* Removes the suffix that /proc/self/fd shows for a file that was unlinked or replaced after it was
 * opened. */
static void cut_deleted(char *path)
{
    static const char mark[] = " (deleted)";
    size_t n = strlen(path), m = sizeof mark - 1;
    if (n > m && !strcmp(path + n - m, mark)) path[n - m] = 0;
}

const char *mr_denied_file(const struct mr_denied *d, int fd)
{
    struct stat st;
    struct statfs fs;
    if (!fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC) return "a file of /proc";
    if (!d->count || fstat(fd, &st)) return NULL;
    char link[32], path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[MR_MAX(n, 0)] = 0;
    if (!st.st_nlink) cut_deleted(path);
    const char *what = mr_denied_path(d, path);
    for (uint32_t i = 0; i < d->count && !what; i++)
        if (is_in(d->paths[i], fd, &st)) what = d->whats[i];
    return what;
}
