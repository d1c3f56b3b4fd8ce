/* What roles need of the object store: values by id from any node, names, and objects that outlive
 * the session because they are persisted and named. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "ops/op.h"
#include "store/arena/client_stop.h"
#include "store/object/tensor.h"
#include "train/feed/rpc.h"

struct mr_role_store {
    struct mr_store *store;    /* of this node, by shared memory; NULL: none */
    struct mr_role_link *link; /* to the store's gRPC; one thread uses it */
    struct mr_stop stop;
    struct mr_op_call *call; /* fetches objects from other nodes; NULL: `get` needs a source */
    const char *node;        /* of the store */
    char **addresses;        /* of other stores, as locate.h hands them out */
    uint32_t addresses_count;
};

/* A pinned view; the caller releases it. `source`: address of a store that has the object; NULL:
 * unknown. */
int mr_role_get(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e);
/* The same with a longer timeout, for a partition of data, which may be large. */
int mr_role_get_part(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e);

/* The memory of the store, and how much of it is pinned; 0: unknown. */
void mr_role_room(const struct mr_role_store *s, uint64_t *memory, uint64_t *pinned);

struct mr_role_named {
    mr_object_id id;
    char address[MR_ADDRESS_BYTES_MAX + 1]; /* of a store that has it */
};

int mr_role_resolve(
    const struct mr_role_store *s, const char *name, struct mr_role_named *out, struct mr_error *e);
/* `text` is a name or an object id. */
int mr_role_find(
    const struct mr_role_store *s, const char *text, struct mr_role_named *out, struct mr_error *e);

/* Seals the draft, persists it (`to_disk`) and names it. Consumes the draft. */
int mr_role_save(const struct mr_role_store *s, struct mr_store_draft *draft, const char *name,
    bool to_disk, mr_object_id *out, struct mr_error *e);
int mr_role_unname(const struct mr_role_store *s, const char *name, struct mr_error *e);
