/* Tells which object stores have which objects. The store of this node asks the stores of the other
 * nodes. */
#pragma once

#include "train/feed/store.h"

/* Called for each store and each block of the ids: has[i] is 1 if the store has ids[first + i]. */
typedef void (*mr_role_where_fn)(void *ctx, const char *node, const char *address, uint32_t first,
    const unsigned char *has, uint32_t n);
int mr_role_where(const struct mr_role_store *s, const mr_object_id *ids, uint32_t n,
    mr_role_where_fn take, void *ctx, struct mr_error *e);

/* Sets sources[i] to the address of another store that has object ids[i]. NULL: this node has the
 * object, or no store is known to have it. The addresses are valid until mr_role_sources_fini. */
void mr_role_find_sources(
    struct mr_role_store *s, const mr_object_id *ids, uint32_t n, const char **sources);
void mr_role_sources_fini(struct mr_role_store *s);
