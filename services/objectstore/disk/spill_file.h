/* Objects that only left memory, in places of one file that are used again. A file for each object
 * would cost more than its bytes: the file system creates, names and removes files of a folder one
 * at a time, and skips all recently removed ones to find the next.
 *
 * A place is the value, its head, and an XXH3 of each 1 MiB, in whole pages, so that a write needs
 * no read before it. The file is truncated to nothing when no object is left. Pages of free places
 * are returned to the disk when they are more than those in use. Nothing here outlives the
 * process.
 *
 * Any thread may call. Calls for one object must come in the order of the operations. */
#pragma once

#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>

struct mr_spill;

int mr_spill_open(const char *path, struct mr_spill **out, struct mr_error *e); /* empties it */
void mr_spill_close(struct mr_spill **s);

/* MR_EIO when the disk does not take it. */
int mr_spill_write(
    struct mr_spill *s, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e);
/* Copies it into a file of its own that survives a crash (mr_disk_file_write's), and erases it;
 * MR_ENOENT, MR_EFORMAT. */
int mr_spill_keep(struct mr_spill *s, mr_object_id id, const char *path, struct mr_error *e);
bool mr_spill_erase(struct mr_spill *s, mr_object_id id); /* false: it is not here */

/* The value, each piece checked; MR_ENOENT, MR_EFORMAT for what is not what was written. */
int mr_spill_read(
    struct mr_spill *s, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e);
/* Its first bytes, at most `room`, unchecked; `bytes` is its size. */
int mr_spill_peek(struct mr_spill *s, mr_object_id id, void *out, uint64_t room, uint64_t *n,
    uint64_t *bytes, struct mr_error *e);

struct mr_spill_stats {
    uint64_t objects;
    uint64_t used_bytes; /* of places in use */
    uint64_t free_bytes; /* of free places that have pages */
    uint64_t file_bytes; /* length of the file */
};
/* The disk is full, and pages of free places are on it: are there some fewer now? */
bool mr_spill_give_pages(struct mr_spill *s);
void mr_spill_stats(struct mr_spill *s, struct mr_spill_stats *out);
void mr_spill_check(struct mr_spill *s); /* asserts every invariant */
