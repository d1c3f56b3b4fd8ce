/* Objects that only left memory, as slots of one file that are used again. A file for each object
 * would cost more than the bytes of a small object: the file system creates and removes the files
 * of a folder one at a time, and a scan for the next file skips all recently removed ones.
 *
 * A slot has the value, its head, and an XXH3 checksum of each 1 MiB, in whole pages, so that a
 * write needs no read before it. The file is truncated to zero when no object is left. Pages of
 * free slots are returned to the file system when they are more than the pages in use, and more
 * than 256 MiB. Nothing in the file outlives the process.
 *
 * Any thread may call. The caller orders the calls for one object. */
#pragma once

#include "services/objectstore/disk/object_file.h"

struct mr_spill;

int mr_spill_open(const char *path, struct mr_spill **out, struct mr_error *e); /* empties it */
void mr_spill_close(struct mr_spill **s);

/* MR_EDISKFULL, MR_EIO. */
int mr_spill_write(
    struct mr_spill *s, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e);
/* Moves the object to a file of its own, which is written durably (mr_disk_file_copy). MR_ENOENT;
 * MR_EFORMAT: damaged. */
int mr_spill_keep(struct mr_spill *s, mr_object_id id, const char *path, struct mr_error *e);
bool mr_spill_erase(struct mr_spill *s, mr_object_id id); /* false: it is not here */

/* Reads the value and checks it. MR_ENOENT; MR_EFORMAT: damaged. */
int mr_spill_read(
    struct mr_spill *s, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e);
/* Its first bytes, unchecked. MR_ENOENT. */
int mr_spill_peek(
    struct mr_spill *s, mr_object_id id, struct mr_object_start *start, struct mr_error *e);

/* For a full disk: returns the pages of all free slots. False: there were none. */
bool mr_spill_give_pages(struct mr_spill *s);

struct mr_spill_stats {
    uint64_t objects;
    uint64_t used_bytes; /* of slots in use */
    uint64_t free_bytes; /* of free slots that have pages */
    uint64_t file_bytes; /* length of the file */
};
void mr_spill_stats(struct mr_spill *s, struct mr_spill_stats *out);
void mr_spill_check(struct mr_spill *s); /* asserts every invariant */
