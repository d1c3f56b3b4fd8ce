/* A bump allocator over address space that is reserved once; the kernel commits a page when it is
 * first touched. The core of a service is its state machine without I/O. A core makes one arena at
 * its start, large enough for the core's largest legal state. */
#pragma once

#include "base/defs.h"

struct mr_arena {
    unsigned char *base;
    size_t bytes_max;
    size_t bytes;
};

/* `bytes_max` is rounded up to whole pages. */
void mr_arena_init(struct mr_arena *a, size_t bytes_max);
void mr_arena_fini(struct mr_arena *a);

/* Returns zeroed memory. Taking more than the reservation fails an assertion. An arena that is
 * initialised with {.bytes_max = SIZE_MAX} has no memory: mr_arena_take then returns NULL and only
 * counts the bytes. */
void *mr_arena_take(struct mr_arena *a, size_t bytes, size_t align);

#define MR_ARENA_ARRAY(a, type, count)                                                             \
    ((type *)mr_arena_take((a), sizeof(type) * (size_t)(count), _Alignof(type)))
