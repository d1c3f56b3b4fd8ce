/* Checksums of objects that are sent to other stores: XXH3 of each chunk of 1 MiB. They are
 * computed when an object is first sent, and cached. An id always has the same bytes, so a cached
 * checksum never becomes invalid.
 *
 * The gRPC thread owns the cache. One offload thread computes the checksums. Any thread may drop a
 * reference to the checksums of an object (mr_checksums_put). */
#pragma once

#include "base/id.h"

#include <stdatomic.h>

struct mr_checksums {
    _Atomic uint32_t count; /* number of references */
    mr_object_id id;
    uint64_t chunks;
    /* number of entries of `sum` that are valid; the offload thread increases it */
    _Atomic uint64_t made;
    uint64_t sum[];
};

struct mr_checksums_cache;

struct mr_checksums_cache *mr_checksums_cache_new(void);
void mr_checksums_cache_free(struct mr_checksums_cache **c);
/* Returns a reference to the checksums of an object of size `bytes`. Some or all of the checksums
 * may not be computed yet. */
struct mr_checksums *mr_checksums_get(
    struct mr_checksums_cache *c, mr_object_id id, uint64_t bytes);
void mr_checksums_put(struct mr_checksums **s);
/* Computes the checksums of the chunks below `until`. Runs on the offload thread. `p`: the
 * object. */
void mr_checksums_make(struct mr_checksums *s, const void *p, uint64_t bytes, uint64_t until);
