/* What roles ask of the object store: values by id, whatever node they are on; names; and objects
 * that outlive the session: persisted and named. Private to the role's files. */
#pragma once

#include "base/limits.h"
#include "ops/op.h"
#include "services/worker/role_rpc.h"
#include "store/arena/client_stop.h"

struct mr_role_store {
    struct mr_store *store;
    struct mr_role_link *link; /* to the store's gRPC; of one thread */
    struct mr_stop stop;
    struct mr_op_call *call; /* finds what lies on another node; NULL: cannot */
};

/* A pinned view, the caller's to release. `source`: address of a store that has it; NULL: unknown.
 */
int mr_role_get(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e);

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
int mr_role_keep(const struct mr_role_store *s, struct mr_store_draft *draft, const char *name,
    bool persist, mr_object_id *out, struct mr_error *e);
int mr_role_unname(const struct mr_role_store *s, const char *name, struct mr_error *e);
