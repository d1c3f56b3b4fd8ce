/* Functions with which the shell queries the core. They do not change the core. */
#pragma once

#include "services/objectstore/core/core.h"

/* Returns how many objects clients may still make. The core keeps further entries of its object
 * table free for objects that clients get, and for objects whose seal is on its way. */
uint32_t mr_ostore_objects_left(const struct mr_ostore *s);
/* Returns the number of objects that are on disk and not in memory. */
uint32_t mr_ostore_objects_away(const struct mr_ostore *s);
/* True: the store has pinned the object for a client. */
bool mr_ostore_is_pinned(const struct mr_ostore *s, uint32_t object);

struct mr_ostore_disk {
    bool is_full;            /* a write found no space, and no write has succeeded since */
    uint64_t write_failures; /* failed writes since the start */
};
struct mr_ostore_disk mr_ostore_disk(const struct mr_ostore *s);

#define MR_OSTORE_HOLDERS_SHOWN 8
struct mr_ostore_info {
    mr_object_id id;
    uint64_t bytes;
    bool in_memory;
    bool on_disk;
    bool persisted;
    uint32_t segment; /* only if in_memory */
    uint64_t offset;
    /* pins that the store took for clients; pins that readers note themselves in shared memory are
     * not counted */
    uint32_t pins;
    uint64_t sequence; /* grows from object to object; mr_ostore_page lists objects in this order */
    mr_time created;
    struct mr_store_owner owner;
    uint32_t holders_count;
    struct mr_store_holder holders[MR_OSTORE_HOLDERS_SHOWN];
};
/* Writes the ids of unvouched objects: their holders may no longer exist. One of three things has
 * happened: a client said that a job holds the object, and this client has gone since; the object
 * was found on disk at the start; or another scheduler has connected. A HOLD by a job ends the
 * doubt. If an object was offered to the scheduler (OFFERED) and no job has claimed it orphan_ns
 * later, it is freed. Returns how many ids were written, at most n_max. */
size_t mr_ostore_unvouched(const struct mr_ostore *s, mr_object_id *out, size_t n_max);
/* Describes one object. MR_ENOENT: the object is not in this store. */
int mr_ostore_stat(const struct mr_ostore *s, mr_object_id id, struct mr_ostore_info *out);
/* Describes up to n_max objects with a sequence above `after`, in order of their sequences, and
 * returns how many. Takes time proportional to the number of all objects. */
size_t mr_ostore_page(
    const struct mr_ostore *s, uint64_t after, struct mr_ostore_info *out, size_t n_max);
void mr_ostore_stats(const struct mr_ostore *s, struct mr_store_stats *out);
