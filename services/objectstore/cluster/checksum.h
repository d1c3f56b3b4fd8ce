/* Checksums of the bytes that leave this node: XXH3 of each 1 MiB of an object. They are computed
 * when an object is first sent and kept for the next time. An id names the same bytes for ever, so
 * a checksum never becomes invalid.
 *
 * The gRPC thread owns the cache. One offload thread computes the checksums. Any thread may
 * release them. */
#pragma once

#include "base/id.h"

#include <stdatomic.h>

struct mr_checksums {
    _Atomic uint32_t count; /* of references */
    mr_object_id id;
    uint64_t chunks;
    _Atomic uint64_t made; /* in order, by the offload thread */
    uint64_t sum[];
};

struct mr_checksums_cache;

struct mr_checksums_cache *mr_checksums_cache_new(void);
void mr_checksums_cache_free(struct mr_checksums_cache **c);
/* Those of this object, as far as they are made; a reference. */
struct mr_checksums *mr_checksums_get(
    struct mr_checksums_cache *c, mr_object_id id, uint64_t bytes);
void mr_checksums_put(struct mr_checksums **s);
/* On the offload thread: makes the checksums up to chunk `until`, of the bytes at `p`. */
void mr_checksums_make(struct mr_checksums *s, const void *p, uint64_t bytes, uint64_t until);
