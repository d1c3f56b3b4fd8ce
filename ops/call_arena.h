/* The arena of one call: memory is taken piece by piece and released all at once. The arena keeps
 * one block for the next call, so small operators never use the heap. */
#pragma once

#include "base/defs.h"

struct mr_call_arena_block;

struct mr_call_arena {
    struct mr_call_arena_block *block; /* list of blocks, the newest first */
    uint64_t bytes;                    /* bytes of all blocks together */
    uint64_t bytes_max;
};

void mr_call_arena_init(struct mr_call_arena *s, uint64_t bytes_max);
void mr_call_arena_fini(struct mr_call_arena *s);
void mr_call_arena_reset(struct mr_call_arena *s);

/* Returns zeroed memory at a multiple of `align` (a power of two, at most 64). NULL: the bound of
 * the arena is reached. */
void *mr_call_arena_take(struct mr_call_arena *s, uint64_t bytes, size_t align);
