/* The threads that use the disk of a node, and that wait for memory, which the gRPC thread must not
 * do. Writers write spilled and persisted objects. Fetchers restore objects, and make room for
 * objects that arrive from other stores. Writers and fetchers are separate threads, so that a
 * restore that waits for room does not block the writes that make room.
 *
 * DIR/objects holds persisted objects. DIR/held holds objects whose file is deleted with their last
 * holder: objects that have or had a name, and objects that the store wrote before its process
 * ended. A file is an extent head, the value, and an XXH3 checksum of each 1 MiB
 * (disk/object_file.h). DIR/spill holds spilled objects, in one file for each writer
 * (disk/spill_file.h). */
#pragma once

#include "services/objectstore/control/shell.h"
#include "services/objectstore/disk/object_file.h"

/* `dir`: NULL if nothing is to be written. */
int mr_disk_open(
    struct mr_ostore_shell *sh, const char *dir, struct mr_disk **out, struct mr_error *e);
/* Starts the threads. `self`: the store's own client. */
void mr_disk_start(struct mr_disk *d, struct mr_store *self);
/* Waits until the threads have done all that was passed to them, then ends the threads. */
void mr_disk_stop(struct mr_disk *d);
void mr_disk_close(struct mr_disk **d);

/* Steps the core with RECOVERED for each object in DIR/objects and DIR/held. Called before the
 * control thread starts. */
void mr_disk_recover(struct mr_disk *d);

/* Carry out effects of the core. Called on the control thread. The answers are events: WRITTEN to a
 * write; SEAL or FETCH_FAILED to a restore; there is none to a move or an erase. */
void mr_disk_write(struct mr_disk *d, const struct mr_ostore_effect *x);
void mr_disk_move(struct mr_disk *d, const struct mr_ostore_effect *x);
void mr_disk_erase(struct mr_disk *d, mr_object_id id);
void mr_disk_restore(struct mr_disk *d, const struct mr_ostore_effect *x);

/* Reads the first bytes of an object on disk, at most `start->room` bytes. Called on the gRPC
 * thread, so the caller must keep `start->room` small. MR_ENOENT: no file has the object. */
int mr_disk_peek(
    struct mr_disk *d, mr_object_id id, struct mr_object_start *start, struct mr_error *e);

/* A request for room in shared memory, for a copy of `id`. The gRPC thread fills in the members up
 * to `ctx`. A fetcher sets the others and then calls `done`. */
struct mr_draft_ask {
    mr_object_id id;
    uint64_t bytes;
    mr_duration timeout;
    void (*done)(struct mr_draft_ask *ask);
    void *ctx;
    int err;
    struct mr_error error;
    struct mr_store_draft draft; /* if `err` is MR_OK: belongs to the thread that asked */
};
/* Passes the request to a fetcher. MR_ELIMIT: too many requests wait. MR_ESTATE: the threads are
 * stopped. After an error `done` never runs. */
int mr_disk_draft(struct mr_disk *d, struct mr_draft_ask *ask);
