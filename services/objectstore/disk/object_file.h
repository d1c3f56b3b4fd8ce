/* One object as one file: the format, its checks, and durable writes. A file is an extent head
 * (store/arena/layout.h), the value, and an XXH3 checksum of each 1 MiB of it. */
#pragma once

#include "store/arena/client.h"

/* Reads `n` bytes at `from`. MR_EFORMAT: the file has fewer, or cannot be read. */
int mr_disk_read(int fd, void *p, uint64_t n, uint64_t from);

/* The value of a file, piece by piece. `next` gives the piece of `n` bytes at `at`: 1 MiB
 * (MR_CHUNK_BYTES), the last one less. NULL: the source is damaged. */
struct mr_disk_source {
    mr_object_id id;
    uint64_t bytes;
    const void *(*next)(void *ctx, uint64_t at, uint64_t n);
    void *ctx;
};
/* Writes the file durably: to a temporary file beside `path`, then fsync, rename, and fsync of the
 * folder. MR_EFORMAT: the source is damaged. */
int mr_disk_file_copy(const char *path, const struct mr_disk_source *source, struct mr_error *e);
/* The same, of a value in memory. */
int mr_disk_file_write(
    const char *path, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e);

/* Id and size from the head. MR_ENOENT; MR_EFORMAT: the head is damaged, or the file has another
 * length than the head says. */
int mr_disk_file_stat(const char *path, mr_object_id *id, uint64_t *bytes, struct mr_error *e);

/* Reads the value and checks it. MR_ENOENT; MR_EFORMAT: a checksum does not match, or the file is
 * of another object. */
int mr_disk_file_read(
    const char *path, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e);

/* The first bytes of an object. Only the head of the file is checked. */
struct mr_object_start {
    void *p;        /* in: where the bytes go */
    uint64_t room;  /* in: at most so many */
    uint64_t n;     /* out: bytes at `p` */
    uint64_t bytes; /* out: size of the object */
};
/* MR_ENOENT, MR_EFORMAT. */
int mr_disk_file_peek(
    const char *path, mr_object_id id, struct mr_object_start *start, struct mr_error *e);
