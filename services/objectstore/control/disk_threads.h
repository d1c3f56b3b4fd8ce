/* The disk of a node, and work that may wait for room: spilled and persisted objects as files,
 * restores, and drafts for the gRPC thread, which must not wait. Some threads write and others
 * fetch, so that a restore that waits for room does not block the writes that make room.
 *
 * DIR/objects holds persisted objects. DIR/held holds objects whose file goes with their last
 * holder (they have, or had, a name; or a drain wrote them). A file is an extent head, the value,
 * and an XXH3 of each 1 MiB of it. DIR/spill holds objects that only left memory, in one file a
 * writer (disk/spill_file.h). */
#pragma once

#include "services/objectstore/control/shell.h"

/* `dir` may be NULL: nothing is written. `self` is the store's own client, borrowed. */
int mr_disk_open(
    struct mr_ostore_shell *sh, const char *dir, struct mr_disk **out, struct mr_error *e);
void mr_disk_start(struct mr_disk *d, struct mr_store *self);
void mr_disk_stop(struct mr_disk *d); /* writes what was asked for, then ends both threads */
void mr_disk_close(struct mr_disk **d);

/* Posts RECOVERED for each persisted object; before the control thread takes clients. */
void mr_disk_recover(struct mr_disk *d);

/* From the control thread; answered by WRITTEN, by a seal or FETCH_FAILED. */
void mr_disk_write(struct mr_disk *d, const struct mr_ostore_effect *x);
void mr_disk_move(struct mr_disk *d, const struct mr_ostore_effect *x);
void mr_disk_erase(struct mr_disk *d, mr_object_id id);
void mr_disk_restore(struct mr_disk *d, const struct mr_ostore_effect *x);

/* From the gRPC thread: the first bytes of an object that is on disk, which is one short read;
 * MR_ENOENT when no file has it. */
int mr_disk_peek(struct mr_disk *d, mr_object_id id, void *out, uint64_t room, uint64_t *n,
    uint64_t *bytes, struct mr_error *e);

/* A draft of `bytes` for a copy of `id`, for the gRPC thread: `done` runs on the fetcher's thread
 * and hands it over. */
struct mr_draft_ask {
    mr_object_id id;
    uint64_t bytes;
    mr_duration timeout;
    void (*done)(struct mr_draft_ask *ask);
    void *ctx;
    uint64_t call;
    int err;
    struct mr_error error;
    struct mr_store_draft draft;
};
int mr_disk_draft(struct mr_disk *d, struct mr_draft_ask *ask); /* MR_ELIMIT: not taken */
