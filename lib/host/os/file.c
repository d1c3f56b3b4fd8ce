/* Reads, writes and copies whole files. Error texts name the path and the system's reason. */
#include "host/os/file.h"

#include "base/alloc.h"
#include "base/defs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* bytes of one copy_file_range(), and of one read() where copy_file_range() fails */
#define PIECE_BYTES ((size_t)64 << 20)
#define BUFFER_BYTES ((size_t)256 << 10)

static void close_fd(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
}

int mr_file_write_error(int number)
{
    return number == ENOSPC || number == EDQUOT ? MR_EDISKFULL : MR_EIO;
}

static int fail(struct mr_error *e, const char *doing, const char *path)
{
    int saved = errno;
    int code = saved == ENOENT || saved == ENOTDIR ? MR_ENOENT
               : saved == EACCES || saved == EPERM ? MR_EPERM
                                                   : mr_file_write_error(saved);
    char words[128];
    return mr_fail(
        e, code, "cannot %s \"%s\": %s", doing, path, strerror_r(saved, words, sizeof words));
}

static int read_all(int fd, const char *path, struct mr_buf *out, struct mr_error *e)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail(e, "read", path);
        if (n == 0) return MR_OK;
        mr_buf_add(out, chunk, (size_t)n);
        if (mr_buf_status(out))
            return mr_fail(e, MR_ETOOBIG, "\"%s\" is larger than %zu bytes", path, out->bytes_max);
    }
}

int mr_file_read(const char *path, struct mr_buf *out, struct mr_error *e)
{
    MR_AUTO(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail(e, "open", path);
    return read_all(fd, path, out, e);
}

int mr_file_read_secret(const char *path, struct mr_buf *out, struct mr_error *e)
{
    MR_AUTO(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail(e, "open", path);
    struct stat st;
    if (fstat(fd, &st)) return fail(e, "look at", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return mr_fail(e, MR_EPERM, "\"%s\" belongs to another user: it must be yours", path);
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return mr_fail(e, MR_EPERM,
            "\"%s\" has mode %04o: a secret must be readable by its owner only (chmod 600)", path,
            (unsigned)(st.st_mode & 07777));
    size_t from = out->n;
    int err = read_all(fd, path, out, e);
    if (err) return err;
    while (out->n > from && (out->p[out->n - 1] == '\n' || out->p[out->n - 1] == '\r'))
        out->n--;
    if (out->n == from) return mr_fail(e, MR_EINVAL, "\"%s\" is empty", path);
    return MR_OK;
}

static int write_all(int fd, struct mr_str bytes, const char *path, struct mr_error *e)
{
    size_t at = 0;
    while (at < bytes.n) {
        ssize_t n = write(fd, bytes.p + at, bytes.n - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail(e, "write", path);
        at += (size_t)n;
    }
    if (fsync(fd)) return fail(e, "sync", path);
    return MR_OK;
}

static int sync_directory_of(const char *path, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *directory = mr_copy_text(path);
    char *slash = strrchr(directory, '/');
    if (slash) slash[slash == directory ? 1 : 0] = 0;
    const char *name = slash ? directory : ".";
    MR_AUTO(close_fd) int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail(e, "open", name);
    if (fsync(fd)) return fail(e, "sync", name);
    return MR_OK;
}

int mr_file_write(const char *path, struct mr_str bytes, mode_t mode, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *temporary = mr_format("%s.XXXXXX", path);
    MR_AUTO(close_fd) int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) return fail(e, "create", temporary);
    int err = write_all(fd, bytes, temporary, e);
    if (!err && fchmod(fd, mode)) err = fail(e, "set the mode of", temporary);
    if (!err && rename(temporary, path)) err = fail(e, "rename to", path);
    if (err) {
        (void)unlink(temporary);
        return err;
    }
    return sync_directory_of(path, e);
}

int mr_file_make_dirs(const char *path, mode_t mode, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *part = mr_copy_text(path);
    for (char *p = part + 1; *part; p++) {
        if (*p && *p != '/') continue;
        char end = *p;
        *p = 0;
        if (mkdir(part, mode) && errno != EEXIST) return fail(e, "make the directory", part);
        *p = end;
        if (!end) break;
    }
    struct stat st;
    if (stat(path, &st)) return fail(e, "look at", path);
    if (!S_ISDIR(st.st_mode))
        return mr_fail(e, MR_EEXIST, "\"%s\" exists and is not a directory", path);
    return MR_OK;
}

/* Copies through a buffer, for file systems between which copy_file_range() fails. */
static int copy_by_buffer(int from, int to)
{
    MR_AUTO(mr_free_ptr) char *buffer = mr_alloc(BUFFER_BYTES);
    ssize_t n;
    while ((n = read(from, buffer, BUFFER_BYTES)) > 0)
        for (ssize_t done = 0, wrote; done < n; done += wrote)
            if ((wrote = write(to, buffer + done, (size_t)(n - done))) < 0) return -1;
    return n < 0 ? -1 : 0;
}

static int copy_bytes(int from, int to)
{
    ssize_t n;
    while ((n = copy_file_range(from, NULL, to, NULL, PIECE_BYTES, 0)) > 0)
        ;
    return n < 0 ? copy_by_buffer(from, to) : 0;
}

static int copy_file(const char *from, const char *to, struct mr_error *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0 && errno == ENOENT) return MR_OK; /* the file was removed meanwhile */
    if (in < 0) return mr_fail(e, MR_EIO, "%s: %s", from, strerror(errno));
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err = MR_OK;
    bool ok = out >= 0 && !copy_bytes(in, out);
    if (!ok) err = mr_fail(e, mr_file_write_error(errno), "%s: %s", to, strerror(errno));
    if (out >= 0 && close(out) && ok)
        err = mr_fail(e, mr_file_write_error(errno), "%s: %s", to, strerror(errno));
    (void)close(in);
    return err;
}

int mr_file_copy_tree(const char *from, const char *to, struct mr_error *e)
{
    DIR *d = opendir(from);
    if (!d)
        return mr_fail(e, errno == ENOENT ? MR_ENOENT : MR_EIO, "%s: %s", from, strerror(errno));
    int err = mr_file_make_dirs(to, 0700, e);
    for (const struct dirent *x; !err && (x = readdir(d));) {
        struct stat st;
        if (!strcmp(x->d_name, ".") || !strcmp(x->d_name, "..")) continue;
        MR_AUTO(mr_free_ptr) char *a = mr_format("%s/%s", from, x->d_name);
        MR_AUTO(mr_free_ptr) char *b = mr_format("%s/%s", to, x->d_name);
        if (lstat(a, &st)) continue; /* the file was removed meanwhile */
        if (S_ISDIR(st.st_mode))
            err = mr_file_copy_tree(a, b, e);
        else if (S_ISREG(st.st_mode))
            err = copy_file(a, b, e);
    }
    (void)closedir(d);
    return err;
}

char *mr_file_beside_program(const char *name)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return mr_copy_text(name);
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (slash) *slash = 0;
    return mr_format("%s/%s", self, name);
}
