/* The arena of one call (call_arena.h), as a list of blocks of memory. */
#include "ops/call_arena.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK_BYTES ((uint64_t)65536)
#define BLOCK_ALIGN 64

struct mr_call_arena_block {
    struct mr_call_arena_block *next;
    uint64_t bytes; /* size of the whole block, this header included */
    uint64_t used;
};

static_assert(sizeof(struct mr_call_arena_block) <= BLOCK_ALIGN, "the header leaves data aligned");

void mr_call_arena_init(struct mr_call_arena *s, uint64_t bytes_max)
{
    *s = (struct mr_call_arena){.bytes_max = bytes_max};
}

static void drop_block(struct mr_call_arena *s)
{
    struct mr_call_arena_block *b = s->block;
    s->block = b->next;
    s->bytes -= b->bytes;
    mr_release(b);
}

void mr_call_arena_fini(struct mr_call_arena *s)
{
    while (s->block)
        drop_block(s);
}

void mr_call_arena_reset(struct mr_call_arena *s)
{
    while (s->block && (s->block->next || s->block->bytes > BLOCK_BYTES))
        drop_block(s);
    if (s->block) s->block->used = BLOCK_ALIGN;
}

static bool add_block(struct mr_call_arena *s, uint64_t bytes)
{
    uint64_t whole = MR_MAX(bytes + BLOCK_ALIGN, BLOCK_BYTES);
    if (whole < bytes || whole > s->bytes_max || s->bytes > s->bytes_max - whole) return false;
    struct mr_call_arena_block *b = mr_alloc_aligned((size_t)whole, BLOCK_ALIGN);
    *b = (struct mr_call_arena_block){.next = s->block, .bytes = whole, .used = BLOCK_ALIGN};
    s->block = b;
    s->bytes += whole;
    return true;
}

void *mr_call_arena_take(struct mr_call_arena *s, uint64_t bytes, size_t align)
{
    mr_assert(align <= BLOCK_ALIGN && (align & (align - 1)) == 0);
    struct mr_call_arena_block *b = s->block;
    uint64_t at = b ? mr_align_up(b->used, align) : 0;
    if (!b || at > b->bytes || b->bytes - at < bytes) {
        if (!add_block(s, bytes)) return NULL;
        b = s->block;
        b->used = BLOCK_ALIGN + bytes;
        return (unsigned char *)b + BLOCK_ALIGN; /* zeroed: mr_alloc_aligned has zeroed the block */
    }
    b->used = at + bytes;
    void *p = (unsigned char *)b + at;
    memset(p, 0, (size_t)bytes);
    return p;
}
