/* Encodes the counts of a job and the place of a block in a file. Reads and writes files of
 * blocks. */
#include "store/meta/trace/parts.h"

#include "base/alloc.h"
#include "base/pack.h"
#include "host/os/file.h"
#include "store/meta/trace/codec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".trace"

static int unpack(struct mr_str bytes, uint64_t *out, uint32_t count)
{
    struct mr_pack_reader r = mr_pack_read(bytes);
    struct mr_pack_item item;
    int err = mr_pack_next(&r, &item);
    if (err || item.type != MR_PACK_LIST || item.count != count) return MR_EFORMAT;
    for (uint32_t i = 0; i < count; i++) {
        err = mr_pack_next(&r, &item);
        if (err || item.type != MR_PACK_INT || item.i < 0) return MR_EFORMAT;
        out[i] = (uint64_t)item.i;
    }
    return mr_pack_at_end(&r) ? MR_OK : MR_EFORMAT;
}

static void pack(struct mr_buf *out, const uint64_t *v, uint32_t count)
{
    mr_pack_list(out, count);
    for (uint32_t i = 0; i < count; i++)
        mr_pack_uint(out, v[i]);
}

void mr_trace_counts_pack(const struct mr_trace_counts *c, struct mr_buf *out)
{
    const uint64_t v[] = {c->spans, c->lost, c->bytes, c->file_bytes};
    pack(out, v, MR_ARRAY_LEN(v));
}

int mr_trace_counts_unpack(struct mr_str bytes, struct mr_trace_counts *out)
{
    uint64_t v[4];
    int err = unpack(bytes, v, MR_ARRAY_LEN(v));
    if (!err) *out = (struct mr_trace_counts){v[0], v[1], v[2], v[3]};
    return err;
}

void mr_trace_place_pack(struct mr_trace_place p, struct mr_buf *out)
{
    const uint64_t v[] = {p.at, p.bytes};
    pack(out, v, MR_ARRAY_LEN(v));
}

int mr_trace_place_unpack(struct mr_str bytes, struct mr_trace_place *out)
{
    uint64_t v[2];
    int err = unpack(bytes, v, MR_ARRAY_LEN(v));
    if (err || v[1] > MR_TRACE_BLOCK_BYTES_MAX) return MR_EFORMAT;
    *out = (struct mr_trace_place){v[0], v[1]};
    return MR_OK;
}

/* Returns the path DIR/<job>.trace, to be freed with mr_release. */
static char *path_of(const char *dir, mr_job_id job)
{
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(job, id);
    return mr_format("%s/%s" SUFFIX, dir, id);
}

/* Finds the job of a file name. False: the name is not that of a trace file. */
static bool job_of_file(const char *name, mr_job_id *out)
{
    size_t n = strlen(name);
    size_t suffix = strlen(SUFFIX);
    if (n <= suffix || strcmp(name + n - suffix, SUFFIX) != 0) return false;
    return mr_job_id_parse(mr_str_of(name, n - suffix), out) == MR_OK;
}

/* Appends a block to the file of its job. The file is not synced: after a power failure no program
 * needs a trace. */
int mr_trace_file_append(
    const char *dir, mr_job_id job, struct mr_str block, struct mr_trace_place *out)
{
    MR_AUTO(mr_free_ptr) char *path = path_of(dir, job);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == ENOENT && mkdir(dir, 0700) == 0)
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return mr_file_write_error(errno);
    off_t at = lseek(fd, 0, SEEK_END);
    ssize_t put = at < 0 ? -1 : write(fd, block.p, block.n);
    int err = put < 0 ? mr_file_write_error(errno) : MR_OK;
    /* If the disk is full, the part of the block that was written is removed. */
    if (put >= 0 && (size_t)put != block.n) {
        err = MR_EDISKFULL;
        (void)!ftruncate(fd, at);
    }
    (void)close(fd);
    if (err) return err;
    *out = (struct mr_trace_place){(uint64_t)at, block.n};
    return MR_OK;
}

int mr_trace_file_read(
    const char *dir, mr_job_id job, struct mr_trace_place place, struct mr_buf *out)
{
    MR_AUTO(mr_free_ptr) char *path = path_of(dir, job);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return MR_EIO;
    mr_buf_clear(out);
    void *p = mr_buf_extend(out, (size_t)place.bytes);
    ssize_t got = p ? pread(fd, p, (size_t)place.bytes, (off_t)place.at) : -1;
    (void)close(fd);
    return got >= 0 && (uint64_t)got == place.bytes ? MR_OK : MR_EIO;
}

void mr_trace_file_each(const char *dir, void (*fn)(void *ctx, mr_job_id job), void *ctx)
{
    DIR *d = opendir(dir);
    if (!d) return;
    for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        mr_job_id job;
        if (job_of_file(entry->d_name, &job)) fn(ctx, job);
    }
    (void)closedir(d);
}

void mr_trace_file_remove(const char *dir, mr_job_id job)
{
    MR_AUTO(mr_free_ptr) char *path = path_of(dir, job);
    (void)unlink(path);
}
