/* One object as one file. Knows the format and its checks; does not know which objects there are.
 */
#pragma once

#include "store/arena/client.h"

/* All `n` bytes of a file from there; MR_EFORMAT: it has fewer, or cannot be read. */
int mr_disk_read(int fd, void *p, uint64_t n, uint64_t from);

/* Writes head, value and checksums to `path`, through a temporary beside it, with fsync of file and
 * folder. */
int mr_disk_file_write(
    const char *path, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e);

/* Id and size from the head; MR_ENOENT, MR_EFORMAT when head and length do not agree. */
int mr_disk_file_stat(const char *path, mr_object_id *id, uint64_t *bytes, struct mr_error *e);

/* The value into `out`, each piece checked: MR_ENOENT, MR_EFORMAT for what is not what was written.
 */
int mr_disk_file_read(
    const char *path, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e);

/* Its first bytes, at most `room`, unchecked beyond the file's head; MR_ENOENT, MR_EFORMAT. */
int mr_disk_file_peek(const char *path, mr_object_id id, void *out, uint64_t room, uint64_t *n,
    uint64_t *bytes, struct mr_error *e);

/* The same as writing durably, of bytes that come piece by piece: MR_CHUNK_BYTES at a time, less at
 * the end; NULL: they are damaged (MR_EFORMAT). */
typedef const void *(*mr_disk_piece)(void *ctx, uint64_t at, uint64_t n);
int mr_disk_file_copy(const char *path, mr_object_id id, uint64_t bytes, mr_disk_piece next,
    void *ctx, struct mr_error *e);
