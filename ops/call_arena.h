/* An arena for one call: memory is taken piece by piece and given back all at once. It keeps one
 * block from call to call, so small operators never use the heap. */
#pragma once

#include "base/defs.h"

struct mr_call_arena_block;

struct mr_call_arena {
    struct mr_call_arena_block *block; /* newest first */
    uint64_t bytes;                    /* in all blocks */
    uint64_t bytes_max;
};

void mr_call_arena_init(struct mr_call_arena *s, uint64_t bytes_max);
void mr_call_arena_fini(struct mr_call_arena *s);
void mr_call_arena_reset(struct mr_call_arena *s);

/* Zeroed, at a multiple of `align` (a power of two, at most 64). NULL past the bound. */
void *mr_call_arena_take(struct mr_call_arena *s, uint64_t bytes, size_t align);
