/* The prefetch thread copies objects of other nodes into this node's store and keeps them pinned
 * until the core releases them. It knows the store. It does not know tasks. */
#pragma once

#include "store/arena/client.h"

struct mr_prefetch;

struct mr_fetched {
    uint32_t value; /* `value` and `serial` as they were given to mr_prefetch_fetch */
    uint32_t serial;
    int err;
    char why[200];
};

/* `done` is called on the prefetch thread, and may wait. */
struct mr_prefetch *mr_prefetch_start(
    struct mr_store *store, void (*done)(void *ctx, const struct mr_fetched *f), void *ctx);
void mr_prefetch_stop(struct mr_prefetch **f); /* releases every pin and joins the thread */

/* Called by one thread. `address` is lent for the life of the prefetch thread. MR_ELIMIT: too many
 * fetches wait. */
int mr_prefetch_fetch(struct mr_prefetch *f, uint32_t value, uint32_t serial, mr_object_id object,
    const char *address);
void mr_prefetch_unpin(struct mr_prefetch *f, uint32_t serial);
