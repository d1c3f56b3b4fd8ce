#include "services/worker/core/blob_pool.h"

#include "base/alloc.h"
#include "base/assert.h"

/* Returns the bytes of a size class, header included. There are two classes for each power of two:
 * 64, 96, 128, 192, 256 … bytes. */
static uint64_t class_bytes(uint32_t c)
{
    return (c & 1 ? (uint64_t)96 : (uint64_t)64) << (c / 2);
}

static uint32_t class_of(uint64_t bytes)
{
    if (bytes <= 64) return 0;
    uint32_t octave = 63 - (uint32_t)__builtin_clzll(bytes - 1); /* 2^octave < bytes */
    uint32_t c = (octave - 6) * 2 + 1;
    return class_bytes(c) >= bytes ? c : c + 1;
}

void mr_worker__blob_pool_init(struct mr_worker__blob_pool *p, uint64_t bytes_max)
{
    *p = (struct mr_worker__blob_pool){.bytes_max = bytes_max};
    /* A freed blob is used again only within its size class. So the reserved address space is four
     * times what may be alive. */
    mr_arena_init(&p->arena, (size_t)bytes_max * 4);
}

void mr_worker__blob_pool_fini(struct mr_worker__blob_pool *p)
{
    mr_arena_fini(&p->arena);
}

struct mr_blob *mr_worker__blob_new(struct mr_worker__blob_pool *p, size_t bytes)
{
    if (bytes > UINT32_MAX - sizeof(struct mr_blob)) return NULL;
    uint32_t c = class_of(bytes + sizeof(struct mr_blob));
    if (c >= MR_POOL_CLASSES) return NULL;
    uint64_t room = class_bytes(c);
    if (room > p->bytes_max - p->bytes) return NULL;

    struct mr_blob *b = p->free[c];
    if (b) {
        p->free[c] = b->next_free;
    } else {
        if (room > p->arena.bytes_max - p->arena.bytes) return NULL;
        b = mr_arena_take(&p->arena, (size_t)room, 64);
    }
    *b = (struct mr_blob){.refs = 1, .bytes = (uint32_t)bytes, .size_class = c};
    p->bytes += room;
    return b;
}

struct mr_blob *mr_worker__blob_copy(struct mr_worker__blob_pool *p, struct mr_str bytes)
{
    struct mr_blob *b = mr_worker__blob_new(p, bytes.n);
    if (b && bytes.n) memcpy(mr_worker__blob_at(b), bytes.p, bytes.n);
    return b;
}

void mr_worker__blob_put(struct mr_worker__blob_pool *p, struct mr_blob **blob)
{
    struct mr_blob *b = *blob;
    *blob = NULL;
    if (!b) return;
    mr_assert(b->refs > 0);
    if (--b->refs) return;
    p->bytes -= class_bytes(b->size_class);
    b->next_free = p->free[b->size_class];
    p->free[b->size_class] = b;
}
