/* Memory of one call: taken piece by piece, given back all at once. Keeps one block from call to
 * call, so that small operators never reach the heap. */
#pragma once

#include "base/defs.h"

struct mr_scratch_block;

struct mr_scratch {
    struct mr_scratch_block *block; /* newest first */
    uint64_t bytes;                 /* in all blocks */
    uint64_t bytes_max;
};

void mr_scratch_init(struct mr_scratch *s, uint64_t bytes_max);
void mr_scratch_fini(struct mr_scratch *s);
void mr_scratch_reset(struct mr_scratch *s);

/* Zeroed, at a multiple of `align` (a power of two, at most 64). NULL past the bound. */
void *mr_scratch_take(struct mr_scratch *s, uint64_t bytes, size_t align);
