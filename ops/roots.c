/* Opens files below the data roots (roots.h). */
#include "ops/roots.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void mr_roots_init(struct mr_roots *r)
{
    *r = (struct mr_roots){0};
}

void mr_roots_fini(struct mr_roots *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        (void)close(r->fds[i]);
        free(r->paths[i]); /* realpath has allocated the path */
    }
    mr_denied_fini(&r->denied);
    *r = (struct mr_roots){0};
}

int mr_roots_add(struct mr_roots *r, const char *directory, struct mr_error *e)
{
    if (r->count == MR_ROOTS_MAX)
        return mr_fail(
            e, MR_ELIMIT, "--data-root %s: at most %d are allowed", directory, MR_ROOTS_MAX);
    char *path = realpath(directory, NULL);
    if (!path) return mr_fail(e, MR_ENOENT, "--data-root %s: %s", directory, strerror(errno));
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        int err = mr_fail(e, MR_EINVAL, "--data-root %s: %s", directory, strerror(errno));
        free(path);
        return err;
    }
    r->paths[r->count] = path;
    r->fds[r->count++] = fd;
    return MR_OK;
}

int mr_roots_check(const struct mr_roots *r, struct mr_error *e)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const char *what = mr_denied_path(&r->denied, r->paths[i]);
        if (what)
            return mr_fail(e, MR_EPERM,
                "--data-root %s: it is %s, of which operators may read nothing", r->paths[i], what);
    }
    return MR_OK;
}

/* Returns the part of an absolute `path` below `root`. NULL: the path lies outside `root`. */
static const char *beneath(const char *root, const char *path)
{
    size_t n = strlen(root);
    if (strcmp(root, "/") == 0) return path + 1;
    if (strncmp(root, path, n) != 0 || (path[n] != '/' && path[n])) return NULL;
    const char *rest = path + n;
    while (*rest == '/')
        rest++;
    return *rest ? rest : ".";
}

static int open_beneath(int root, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    /* EAGAIN: there was a rename during the walk, so the call is repeated. */
    for (int tries = 0; tries < 8; tries++) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) return (int)fd;
    }
    return -1;
}

static int check_file(const struct mr_roots *r, int fd, const char *path, struct mr_error *e)
{
    struct stat st;
    const char *denied = mr_denied_file(&r->denied, fd);
    if (denied)
        return mr_fail(
            e, MR_EPERM, "\"%s\" is refused: it is %s; no operator may read it", path, denied);
    if (fstat(fd, &st)) return mr_fail(e, MR_EIO, "cannot read \"%s\": %s", path, strerror(errno));
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) return MR_OK;
    return mr_fail(e, MR_EPERM, "cannot read \"%s\": not a regular file", path);
}

static int refuse(const struct mr_roots *r, const char *path, int why, struct mr_error *e)
{
    const char *s = r->count == 1 ? "" : "s", *root = r->count == 1 ? r->paths[0] : "";
    const char *space = r->count == 1 ? " " : "";
    if (why == ENOENT || why == ENOTDIR)
        return mr_fail(e, MR_ENOENT, "no file \"%s\" beneath the data root%s%s%s (--data-root)",
            path, s, space, root);
    if (why == EXDEV || why == 0)
        return mr_fail(e, MR_EPERM,
            "\"%s\" lies outside the data root%s%s%s%s; start with --data-root DIR to allow it",
            path, s, space, root, r->count ? "" : " (there are none)");
    if (why == ELOOP)
        return mr_fail(
            e, MR_EPERM, "\"%s\" goes through too many links, or one of the kernel's", path);
    if (why == EACCES || why == EPERM)
        return mr_fail(e, MR_EPERM,
            "\"%s\" is there and cannot be read: %s; the worker's user (%u) needs the right to",
            path, strerror(why), (unsigned)geteuid());
    return mr_fail(e, MR_EIO, "cannot open \"%s\": %s", path, strerror(why));
}

int mr_roots_open(const struct mr_roots *r, struct mr_str path, int *fd, struct mr_error *e)
{
    if (!path.n || memchr(path.p, 0, path.n))
        return mr_fail(e, MR_EINVAL, "a path is not empty and has no NUL");
    if (path.n >= 4096) return mr_fail(e, MR_ELIMIT, "a path of %zu bytes", path.n);
    char text[4096];
    memcpy(text, path.p, path.n);
    text[path.n] = 0;
    /* The errno to report. A refusal by one root counts more than ENOENT from another root. 0: the
     * path lies below no root. */
    int why = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const char *relative = text[0] == '/' ? beneath(r->paths[i], text) : text;
        if (!relative) continue;
        int found = open_beneath(r->fds[i], relative);
        if (found >= 0) {
            int err = check_file(r, found, text, e);
            if (err) {
                (void)close(found);
                return err;
            }
            *fd = found;
            return MR_OK;
        }
        if (!why || why == ENOENT) why = errno;
    }
    return refuse(r, text, why, e);
}
