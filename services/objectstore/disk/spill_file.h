/* Spilled objects, which are on disk only because memory was full. The objects of one struct
 * mr_spill are in one file, which consists of slots; a slot is used again after its object is
 * erased. A file for each object would cost more time than writing a small object: the file system
 * creates and removes the files of a folder one at a time, and ext4's search for a free inode
 * visits all inodes that were removed in the last seconds.
 *
 * A slot has the value, an extent head (store/arena/layout.h), and an XXH3 checksum of each 1 MiB
 * of the value. Whole pages are written, so that the kernel need not read a page before a write.
 * The file is truncated to zero when no object is left. Pages of free slots are returned to the
 * file system when they are more than the pages in use, and more than 256 MiB. No object in the
 * file outlives the process.
 *
 * Any thread may call the functions. The caller orders the calls for one object. */
#pragma once

#include "services/objectstore/disk/object_file.h"

struct mr_spill;

/* Opens the file and empties it. */
int mr_spill_open(const char *path, struct mr_spill **out, struct mr_error *e);
void mr_spill_close(struct mr_spill **s);

/* Writes an object. MR_EDISKFULL: there is no space. MR_EIO: the write failed. */
int mr_spill_write(
    struct mr_spill *s, mr_object_id id, const void *p, uint64_t bytes, struct mr_error *e);
/* Moves the object to a file of its own, which is written durably (mr_disk_file_copy). MR_ENOENT:
 * there is no such object. MR_EFORMAT: the object is damaged. */
int mr_spill_keep(struct mr_spill *s, mr_object_id id, const char *path, struct mr_error *e);
/* Erases the object. False: there is no such object. */
bool mr_spill_erase(struct mr_spill *s, mr_object_id id);

/* Reads the value and checks it. MR_ENOENT: there is no such object. MR_EFORMAT: it is damaged. */
int mr_spill_read(
    struct mr_spill *s, mr_object_id id, void *out, uint64_t bytes, struct mr_error *e);
/* Reads the first bytes of the value, unchecked. MR_ENOENT: there is no such object. */
int mr_spill_peek(
    struct mr_spill *s, mr_object_id id, struct mr_object_start *start, struct mr_error *e);

/* Called when the disk is full: returns the pages of all free slots to the file system. False: the
 * free slots had no pages. */
bool mr_spill_give_pages(struct mr_spill *s);

struct mr_spill_stats {
    uint64_t objects;
    uint64_t used_bytes; /* pages of slots in use */
    uint64_t free_bytes; /* pages of free slots, as far as they are on the disk */
    uint64_t file_bytes; /* length of the file */
};
void mr_spill_stats(struct mr_spill *s, struct mr_spill_stats *out);
/* Asserts every invariant. */
void mr_spill_check(struct mr_spill *s);
