/* What roles need of the object store: values by id from any node, names, and objects that outlive
 * the session (persisted and named). Private to the role's files. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "ops/op.h"
#include "store/arena/client_stop.h"
#include "store/object/tensor.h"
#include "train/feed/rpc.h"

struct mr_role_store {
    struct mr_store *store;
    struct mr_role_link *link; /* to the store's gRPC; of one thread */
    struct mr_stop stop;
    struct mr_op_call *call; /* finds what lies on another node; NULL: cannot */
    const char *node;        /* of the store */
    char **addresses;        /* of other stores, for who was told one */
    uint32_t addresses_count;
};

/* A pinned view, the caller's to release. `source`: address of a store that has it; NULL: unknown.
 */
int mr_role_get(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e);

/* The same of a partition of data, which may be large. */
int mr_role_get_part(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e);

/* ---- locate.c -------------------------------------------------------------------------------- */

/* Which stores have which of these objects: `take` is called for each store and some of the ids,
 * from `first` on: has[i] is 1 if it has ids[first + i]. MR_EAWAY …: it cannot be told. */
typedef void (*mr_role_where_fn)(void *ctx, const char *node, const char *address, uint32_t first,
    const unsigned char *has, uint32_t n);
int mr_role_where(const struct mr_role_store *s, const mr_object_id *ids, uint32_t n,
    mr_role_where_fn take, void *ctx, struct mr_error *e);
/* For each of these: address of another store that has it, as long as the role; NULL: it is here,
 * or nobody is known to have it. */
void mr_role_find_sources(
    struct mr_role_store *s, const mr_object_id *ids, uint32_t n, const char **sources);
void mr_role_sources_fini(struct mr_role_store *s);

/* The memory of the store, and what of it is pinned; 0: unknown. */
void mr_role_room(const struct mr_role_store *s, uint64_t *memory, uint64_t *pinned);

struct mr_role_named {
    mr_object_id id;
    char address[MR_ADDRESS_BYTES_MAX + 1]; /* of the store that has it */
};

int mr_role_resolve(
    const struct mr_role_store *s, const char *name, struct mr_role_named *out, struct mr_error *e);
/* A name or an object id, whichever `text` is. */
int mr_role_find(
    const struct mr_role_store *s, const char *text, struct mr_role_named *out, struct mr_error *e);

/* Seals the draft and makes it stay under `name`, on disk when `persist`. The draft is consumed. */
int mr_role_save(const struct mr_role_store *s, struct mr_store_draft *draft, const char *name,
    bool persist, mr_object_id *out, struct mr_error *e);
int mr_role_unname(const struct mr_role_store *s, const char *name, struct mr_error *e);
