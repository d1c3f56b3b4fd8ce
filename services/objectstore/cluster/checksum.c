/* The cache of checksums is direct-mapped: the hash of an id is the number of its slot. A new entry
 * replaces the old entry of its slot. */
#include "services/objectstore/cluster/checksum.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"

#include <xxhash.h>

#define SLOTS 4096u /* a power of two */
/* Limit of chunks whose checksums are kept: 32 MiB of checksums, for 4 TiB of objects. */
#define CHUNKS_MAX ((uint64_t)1 << 22)

struct mr_checksums_cache {
    struct mr_checksums *slots[SLOTS];
    uint64_t chunks;
};

struct mr_checksums_cache *mr_checksums_cache_new(void)
{
    return mr_alloc(sizeof(struct mr_checksums_cache));
}

static void leave(struct mr_checksums_cache *c, uint32_t slot)
{
    struct mr_checksums *s = MR_STEAL(c->slots[slot]);
    if (!s) return;
    c->chunks -= s->chunks;
    mr_checksums_put(&s);
}

void mr_checksums_cache_free(struct mr_checksums_cache **pc)
{
    struct mr_checksums_cache *c = MR_STEAL(*pc);
    if (!c) return;
    for (uint32_t i = 0; i < SLOTS; i++)
        leave(c, i);
    mr_release(c);
}

struct mr_checksums *mr_checksums_get(struct mr_checksums_cache *c, mr_object_id id, uint64_t bytes)
{
    uint64_t chunks = (bytes + MR_CHUNK_BYTES - 1) / MR_CHUNK_BYTES;
    uint32_t slot = (uint32_t)mr_object_id_hash(id) & (SLOTS - 1);
    struct mr_checksums *s = c->slots[slot];
    if (s && mr_object_id_eq(s->id, id) && s->chunks == chunks) {
        atomic_fetch_add(&s->count, 1);
        return s;
    }
    leave(c, slot);
    for (uint32_t i = 0; i < SLOTS && c->chunks + chunks > CHUNKS_MAX; i++)
        leave(c, i);
    s = mr_alloc(sizeof *s + chunks * sizeof s->sum[0]);
    s->id = id;
    s->chunks = chunks;
    atomic_store(&s->count, 1);
    if (chunks > CHUNKS_MAX) return s;
    atomic_store(&s->count, 2);
    c->slots[slot] = s;
    c->chunks += chunks;
    return s;
}

void mr_checksums_put(struct mr_checksums **ps)
{
    struct mr_checksums *s = MR_STEAL(*ps);
    if (s && atomic_fetch_sub(&s->count, 1) == 1) mr_release(s);
}

void mr_checksums_make(struct mr_checksums *s, const void *p, uint64_t bytes, uint64_t until)
{
    mr_assert(until <= s->chunks);
    const unsigned char *from = p;
    for (uint64_t i = atomic_load(&s->made); i < until; i++) {
        uint64_t at = i * MR_CHUNK_BYTES;
        s->sum[i] = XXH3_64bits(from + at, (size_t)MR_MIN(bytes - at, (uint64_t)MR_CHUNK_BYTES));
        atomic_store(&s->made, i + 1);
    }
}
