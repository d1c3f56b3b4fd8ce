/* Small texts and arrays that live as long as one graph and never move. */
#pragma once

#include "base/str.h"

struct mr_pool_block;

struct mr_pool {
    struct mr_pool_block *blocks; /* newest first */
    size_t bytes;
};

void mr_pool_fini(struct mr_pool *p);
void *mr_pool_take(struct mr_pool *p, size_t bytes); /* zeroed, aligned for anything */
struct mr_str mr_pool_copy(struct mr_pool *p, struct mr_str s);
