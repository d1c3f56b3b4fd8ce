/* Reads files below the data roots, for operators (file.h). */
#include "ops/file.h"

#include "store/object/gzip.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((uint64_t)8 << 20) /* bytes read between two checks for cancellation */

int mr_op_file_open(struct mr_op_call *call, struct mr_str path, struct mr_op_file *out)
{
    int fd = -1;
    int err = call->does->open(call, path, &fd);
    if (err) return err;
    struct stat st = {0};
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        (void)close(fd);
        return call->does->fail(call, MR_EINVAL, "\"%.*s\" is %s", MR_STR_ARG(path),
            S_ISDIR(st.st_mode) ? "a directory: a file is wanted" : "not a regular file");
    }
    *out = (struct mr_op_file){.fd = fd, .bytes = (uint64_t)st.st_size, .path = path};
    return MR_OK;
}

void mr_op_file_close(struct mr_op_file *f)
{
    if (f->fd >= 0) (void)close(f->fd);
    f->fd = -1;
}

int mr_op_file_read(
    struct mr_op_call *call, const struct mr_op_file *f, uint64_t offset, void *p, uint64_t n)
{
    uint64_t done = 0;
    while (done < n) {
        if (call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
        ssize_t got = pread(
            f->fd, (char *)p + done, (size_t)MR_MIN(n - done, READ_BYTES), (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return call->does->fail(
                call, MR_EIO, "cannot read \"%.*s\": %s", MR_STR_ARG(f->path), strerror(errno));
        if (got == 0)
            return call->does->fail(
                call, MR_EIO, "\"%.*s\" became shorter while it was read", MR_STR_ARG(f->path));
        done += (uint64_t)got;
    }
    return MR_OK;
}

int mr_op_file_take(struct mr_op_call *call, const struct mr_op_file *f, uint64_t offset,
    uint64_t n, struct mr_str *out)
{
    void *p = call->does->scratch(call, MR_MAX(n, 1u));
    if (!p) return MR_ELIMIT;
    *out = mr_str_of(p, (size_t)n);
    return mr_op_file_read(call, f, offset, p, n);
}

static bool is_cancelled(void *ctx)
{
    struct mr_op_call *call = ctx;
    return call->does->is_cancelled(call);
}

int mr_op_unpack(struct mr_op_call *call, struct mr_str bytes, struct mr_str path,
    struct mr_buf *room, struct mr_str *out)
{
    struct mr_error why = {0};
    *out = bytes;
    if (!mr_gzip_is(bytes)) return MR_OK;
    int err = mr_gzip_unpack(bytes, room, is_cancelled, call, &why);
    *out = mr_buf_str(room);
    if (!err) return MR_OK;
    return path.n ? call->does->fail(call, err, "\"%.*s\": %s", MR_STR_ARG(path), why.text)
                  : call->does->fail(call, err, "%s", why.text);
}

int mr_op_file_take_all(
    struct mr_op_call *call, const struct mr_op_file *f, struct mr_buf *room, struct mr_str *out)
{
    struct mr_str bytes = {0};
    if (f->bytes > room->bytes_max)
        return call->does->fail(call, MR_ELIMIT, "\"%.*s\": %llu bytes, at most %llu are allowed",
            MR_STR_ARG(f->path), (unsigned long long)f->bytes, (unsigned long long)room->bytes_max);
    int err = mr_op_file_take(call, f, 0, f->bytes, &bytes);
    return err ? err : mr_op_unpack(call, bytes, f->path, room, out);
}
