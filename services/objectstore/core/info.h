/* What the shell may read of the core without a step. */
#pragma once

#include "services/objectstore/core/core.h"

/* How many objects clients may still make. Some places stay free for objects that clients get, or
 * whose seal is on its way. */
uint32_t mr_ostore_objects_left(const struct mr_ostore *s);
uint32_t mr_ostore_objects_away(const struct mr_ostore *s); /* objects that are on disk only */
bool mr_ostore_is_pinned(
    const struct mr_ostore *s, uint32_t object); /* by the store on behalf of a client */

struct mr_ostore_disk {
    bool is_full;            /* a write found no space, and none has succeeded since */
    uint64_t write_failures; /* since the start */
};
struct mr_ostore_disk mr_ostore_disk(const struct mr_ostore *s);

#define MR_OSTORE_HOLDERS_SHOWN 8
struct mr_ostore_info {
    mr_object_id id;
    uint64_t bytes;
    bool in_memory;
    bool on_disk;
    bool persisted;
    uint32_t segment; /* if in memory */
    uint64_t offset;
    uint32_t pins;     /* by the store for clients; not those that readers took in pin pages */
    uint64_t sequence; /* grows with each object; the order of List */
    mr_time created;
    struct mr_store_owner owner;
    uint32_t holders_count;
    struct mr_store_holder holders[MR_OSTORE_HOLDERS_SHOWN];
};
/* Objects whose holders may no longer exist: a client that has died since said that a job holds the
 * object, or the object was found on disk at the start. A HOLD by a job ends the doubt. An object
 * that has been offered to the scheduler (OFFERED) and has no holder orphan_ns later is freed. */
size_t mr_ostore_unvouched(const struct mr_ostore *s, mr_object_id *out, size_t n_max);
/* MR_ENOENT: the object is not in this store. */
int mr_ostore_stat(const struct mr_ostore *s, mr_object_id id, struct mr_ostore_info *out);
/* Up to n_max objects with a sequence above `after`, in order of their sequences. O(objects). */
size_t mr_ostore_page(
    const struct mr_ostore *s, uint64_t after, struct mr_ostore_info *out, size_t n_max);
void mr_ostore_stats(const struct mr_ostore *s, struct mr_store_stats *out);
