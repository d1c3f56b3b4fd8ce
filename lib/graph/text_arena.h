/* An arena for small texts and arrays of one graph. The memory never moves, and is freed as a
 * whole. */
#pragma once

#include "base/str.h"

struct mr_text_arena_block;

struct mr_text_arena {
    struct mr_text_arena_block *blocks; /* newest first */
    size_t bytes;
};

void mr_text_arena_fini(struct mr_text_arena *a);
/* The memory is zeroed and aligned for any type. */
void *mr_text_arena_take(struct mr_text_arena *a, size_t bytes);
struct mr_str mr_text_arena_copy(struct mr_text_arena *a, struct mr_str s);
