/* What the shell may read of the core without a step. */
#pragma once

#include "services/objectstore/core/core.h"

/* Objects that clients may still make: some places stay free for what is wanted or on its way. */
uint32_t mr_ostore_objects_left(const struct mr_ostore *s);
uint32_t mr_ostore_objects_away(const struct mr_ostore *s); /* on disk only */
bool mr_ostore_is_pinned(
    const struct mr_ostore *s, uint32_t object); /* by the store, for clients */

struct mr_ostore_disk {
    bool is_full;            /* no write went well since one found no space */
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
    uint32_t segment; /* where, when in memory */
    uint64_t offset;
    uint32_t pins;     /* counted by the store; those in pin pages are not known here */
    uint64_t sequence; /* grows with each object: the order of List */
    mr_time created;
    struct mr_store_owner owner;
    uint32_t holders_count;
    struct mr_store_holder holders[MR_OSTORE_HOLDERS_SHOWN];
};
/* Objects that nobody alive vouches for: a job holds them by the word of a client that died since,
 * or they lay on disk at the start and had a holder then. Up to n_max ids. A HOLD by a job settles
 * it; what was offered and has no holder orphan_ns later is freed. */
size_t mr_ostore_unvouched(const struct mr_ostore *s, mr_object_id *out, size_t n_max);
/* MR_ENOENT for what is not here at all. */
int mr_ostore_stat(const struct mr_ostore *s, mr_object_id id, struct mr_ostore_info *out);
/* The up to n_max objects of the least sequences above `after`, in that order. O(objects). */
size_t mr_ostore_page(
    const struct mr_ostore *s, uint64_t after, struct mr_ostore_info *out, size_t n_max);
void mr_ostore_stats(const struct mr_ostore *s, struct mr_store_stats *out);
