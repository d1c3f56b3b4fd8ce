/* Objects in files. The contents of a file are checked as bytes from outside: a disk may return
 * wrong data. */
#include "services/objectstore/disk/object_file.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/os/file.h"
#include "store/arena/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static uint64_t chunks_of(uint64_t bytes)
{
    return (bytes + MR_CHUNK_BYTES - 1) / MR_CHUNK_BYTES;
}

static int write_all(int fd, const void *p, uint64_t n)
{
    const char *at = p;
    while (n) {
        ssize_t w = write(fd, at, MR_MIN(n, (uint64_t)MR_CHUNK_BYTES));
        if (w < 0 && errno == EINTR) continue;
        if (w <= 0) return mr_file_write_error(errno);
        at += w;
        n -= (uint64_t)w;
    }
    return MR_OK;
}

int mr_disk_read(int fd, void *p, uint64_t n, uint64_t from)
{
    char *at = p;
    while (n) {
        ssize_t r = pread(fd, at, MR_MIN(n, (uint64_t)MR_CHUNK_BYTES), (off_t)from);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return MR_EFORMAT;
        at += r;
        from += (uint64_t)r;
        n -= (uint64_t)r;
    }
    return MR_OK;
}

static int write_body(int fd, const struct mr_disk_source *source)
{
    uint64_t bytes = source->bytes;
    struct mr_extent_head head;
    mr_extent_head_fill(&head, source->id, bytes, (mr_job_id){0}, 0, 0);
    uint64_t chunks = chunks_of(bytes);
    MR_AUTO(mr_free_ptr)
    uint64_t *checksums = mr_alloc_array(chunks ? chunks : 1, sizeof *checksums);
    int err = write_all(fd, &head, sizeof head);
    for (uint64_t i = 0; i < chunks && !err; i++) {
        uint64_t at = i * MR_CHUNK_BYTES;
        uint64_t n = MR_MIN(bytes - at, (uint64_t)MR_CHUNK_BYTES);
        const void *p = source->next(source->ctx, at, n);
        if (!p) return MR_EFORMAT;
        checksums[i] = XXH3_64bits(p, n);
        err = write_all(fd, p, n);
    }
    return err ? err : write_all(fd, checksums, chunks * sizeof *checksums);
}

static int sync_folder(const char *path)
{
    MR_AUTO(mr_free_ptr) char *copy = mr_copy_text(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return MR_EIO;
    int err = fsync(fd) ? mr_file_write_error(errno) : MR_OK;
    close(fd);
    return err;
}

int mr_disk_file_copy(const char *path, const struct mr_disk_source *source, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *temporary = mr_format("%s.tmp", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return mr_fail(
            e, mr_file_write_error(errno), "cannot write %s: %s", temporary, strerror(errno));
    int err = write_body(fd, source);
    if (!err && fsync(fd)) err = mr_file_write_error(errno);
    int number = errno; /* errno of the first failure */
    if (close(fd) && !err) err = mr_file_write_error(number = errno);
    if (!err && rename(temporary, path)) err = mr_file_write_error(number = errno);
    if (!err && (err = sync_folder(path))) number = errno;
    if (!err) return MR_OK;
    const char *why = err == MR_EFORMAT ? "its source is damaged" : strerror(number);
    err = mr_fail(e, err, "cannot write %s: %s", path, why);
    (void)unlink(temporary);
    return err;
}

static const void *memory_piece(void *ctx, uint64_t at, uint64_t n)
{
    (void)n;
    return *(const unsigned char **)ctx + at;
}

int mr_disk_file_write(
    const char *path, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e)
{
    const struct mr_disk_source source = {
        .id = id, .bytes = bytes, .next = memory_piece, .ctx = &p};
    return mr_disk_file_copy(path, &source, e);
}

static int read_head(int fd, struct mr_extent_head *head, const char *path, struct mr_error *e)
{
    struct stat st;
    bool ok = !mr_disk_read(fd, head, sizeof *head, 0) && mr_extent_head_is_valid(head) &&
              head->bytes <= MR_OBJECT_BYTES_MAX && !fstat(fd, &st);
    uint64_t whole = ok ? sizeof *head + head->bytes + chunks_of(head->bytes) * 8 : 0;
    if (!ok || st.st_size < 0 || (uint64_t)st.st_size != whole)
        return mr_fail(e, MR_EFORMAT, "%s is damaged or incomplete", path);
    return MR_OK;
}

static int open_file(const char *path, int *fd, struct mr_error *e)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd >= 0) return MR_OK;
    return mr_fail(
        e, errno == ENOENT ? MR_ENOENT : MR_EIO, "cannot read %s: %s", path, strerror(errno));
}

int mr_disk_file_stat(const char *path, mr_object_id *id, uint64_t *bytes, struct mr_error *e)
{
    int fd;
    int err = open_file(path, &fd, e);
    if (err) return err;
    struct mr_extent_head head;
    err = read_head(fd, &head, path, e);
    close(fd);
    if (err) return err;
    *id = (mr_object_id){head.maker, head.number};
    *bytes = head.bytes;
    return MR_OK;
}

int mr_disk_file_peek(
    const char *path, mr_object_id id, struct mr_object_start *start, struct mr_error *e)
{
    int fd;
    int err = open_file(path, &fd, e);
    if (err) return err;
    struct mr_extent_head head;
    err = read_head(fd, &head, path, e);
    if (!err && (head.maker != id.maker || head.number != id.number))
        err = mr_fail(e, MR_EFORMAT, "%s holds another object", path);
    start->bytes = err ? 0 : head.bytes;
    start->n = MR_MIN(start->bytes, start->room);
    if (!err) err = mr_disk_read(fd, start->p, start->n, sizeof head);
    close(fd);
    return err;
}

static int read_body(int fd, unsigned char *out, uint64_t bytes)
{
    uint64_t chunks = chunks_of(bytes);
    MR_AUTO(mr_free_ptr)
    uint64_t *checksums = mr_alloc_array(chunks ? chunks : 1, sizeof *checksums);
    uint64_t start = sizeof(struct mr_extent_head);
    int err = mr_disk_read(fd, checksums, chunks * sizeof *checksums, start + bytes);
    for (uint64_t i = 0; i < chunks && !err; i++) {
        uint64_t at = i * MR_CHUNK_BYTES;
        uint64_t n = MR_MIN(bytes - at, (uint64_t)MR_CHUNK_BYTES);
        err = mr_disk_read(fd, out + at, n, start + at);
        if (!err && XXH3_64bits(out + at, n) != checksums[i]) err = MR_EFORMAT;
    }
    return err;
}

int mr_disk_file_read(
    const char *path, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e)
{
    int fd;
    int err = open_file(path, &fd, e);
    if (err) return err;
    struct mr_extent_head head;
    err = read_head(fd, &head, path, e);
    bool same = !err && head.maker == id.maker && head.number == id.number && head.bytes == bytes;
    if (!err && !same) err = mr_fail(e, MR_EFORMAT, "%s holds another object", path);
    if (!err && read_body(fd, out, bytes))
        err = mr_fail(e, MR_EFORMAT, "%s is damaged: a checksum does not match", path);
    close(fd);
    return err;
}
