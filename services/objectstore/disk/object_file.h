/* One object as one file: the format, its checks, and durable writes. A file is an extent head
 * (store/arena/layout.h), the value, and an XXH3 checksum of each 1 MiB of the value. */
#pragma once

#include "store/arena/client.h"

/* Reads `n` bytes at position `from`. MR_EFORMAT: the file has fewer bytes, or cannot be read. */
int mr_disk_read(int fd, void *p, uint64_t n, uint64_t from);

/* Gives the value that is to be written, piece by piece. `next` returns the `n` bytes at position
 * `at`: 1 MiB (MR_CHUNK_BYTES), or less for the last piece. `next` returns NULL if the source is
 * damaged. */
struct mr_disk_source {
    mr_object_id id;
    uint64_t bytes;
    const void *(*next)(void *ctx, uint64_t at, uint64_t n);
    void *ctx;
};
/* Writes the file durably: to a temporary file beside `path`, then fsync, rename, and fsync of the
 * folder. MR_EFORMAT: the source is damaged. */
int mr_disk_file_copy(const char *path, const struct mr_disk_source *source, struct mr_error *e);
/* Writes the file of a value in memory, in the same way. */
int mr_disk_file_write(
    const char *path, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e);

/* Reads id and size from the head of a file. MR_ENOENT: there is no file. MR_EFORMAT: the head is
 * damaged, or the file has another length than the head says. */
int mr_disk_file_stat(const char *path, mr_object_id *id, uint64_t *bytes, struct mr_error *e);

/* Reads the value and checks it. MR_ENOENT: there is no file. MR_EFORMAT: a checksum does not
 * match, or the file is of another object. */
int mr_disk_file_read(
    const char *path, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e);

/* The first bytes of an object. Of the file only the head is checked. */
struct mr_object_start {
    void *p;        /* set by the caller: where the bytes go */
    uint64_t room;  /* set by the caller: how many bytes fit */
    uint64_t n;     /* result: number of bytes at `p` */
    uint64_t bytes; /* result: size of the object */
};
/* Reads the first bytes of an object. MR_ENOENT: there is no file. MR_EFORMAT: the head is
 * damaged. */
int mr_disk_file_peek(
    const char *path, mr_object_id id, struct mr_object_start *start, struct mr_error *e);
