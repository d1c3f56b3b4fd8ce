/* Address space reserved once, committed by touch, given out by a bump pointer: what a core takes
 * in `new` for the largest state it may reach. */
#pragma once

#include "base/defs.h"

struct mr_arena {
    unsigned char *base;
    size_t bytes_max;
    size_t bytes;
};

void mr_arena_init(struct mr_arena *a, size_t bytes_max); /* rounded up to pages */
void mr_arena_fini(struct mr_arena *a);

/* Zeroed memory; asking past the reservation is an assertion. An arena of {.bytes_max = SIZE_MAX}
 * has no memory: it gives out NULL and only counts. */
void *mr_arena_take(struct mr_arena *a, size_t bytes, size_t align);

#define MR_ARENA_ARRAY(a, type, count)                                                             \
    ((type *)mr_arena_take((a), sizeof(type) * (size_t)(count), _Alignof(type)))
