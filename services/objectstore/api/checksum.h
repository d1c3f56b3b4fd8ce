/* Checksums of what leaves this node: XXH3 of each 1 MiB of an object, made when it is first sent
 * and kept for the next time. An id names one byte string for ever, so they never grow stale.
 *
 * The cache belongs to the gRPC thread; sums are filled by one helper thread and may be let go on
 * any thread. */
#pragma once

#include "base/id.h"

#include <stdatomic.h>

struct mr_sums {
    _Atomic uint32_t count; /* of references */
    mr_object_id id;
    uint64_t chunks;
    _Atomic uint64_t made; /* in order, by the helper */
    uint64_t sum[];
};

struct mr_sums_cache;

struct mr_sums_cache *mr_sums_cache_new(void);
void mr_sums_cache_free(struct mr_sums_cache **c);
/* Those of this object, as far as they are made; a reference. */
struct mr_sums *mr_sums_get(struct mr_sums_cache *c, mr_object_id id, uint64_t bytes);
void mr_sums_put(struct mr_sums **s);
/* Helper: makes the sums up to chunk `until`, of the bytes at `p`. */
void mr_sums_make(struct mr_sums *s, const void *p, uint64_t bytes, uint64_t until);
