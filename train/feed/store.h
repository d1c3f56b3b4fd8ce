/* The object store as roles use it: values by id from any node, names, and objects that outlive the
 * session because they are persisted and named. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "ops/op.h"
#include "store/arena/client_stop.h"
#include "store/object/tensor.h"
#include "train/feed/rpc.h"

struct mr_role_store {
    struct mr_store *store;    /* the store of this node, by shared memory; NULL: none */
    struct mr_role_link *link; /* link to the store's gRPC service; one thread uses the link */
    struct mr_stop stop;
    /* fetches objects from other nodes; NULL: mr_role_get needs a source */
    struct mr_op_call *call;
    const char *node; /* name of the store's node */
    char **addresses; /* addresses of other stores, as locate.h hands them out */
    uint32_t addresses_count;
};

/* Gets a pinned view of an object, which the caller releases. `source`: address of a store that has
 * the object; NULL: unknown. */
int mr_role_get(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e);
/* Does the same as mr_role_get with a longer timeout, for a partition of data, which may be
 * large. */
int mr_role_get_part(const struct mr_role_store *s, mr_object_id id, const char *source,
    struct mr_store_view *out, struct mr_error *e);

/* Sets `*memory` to the memory of the store and `*pinned` to the pinned part of it; 0: unknown. */
void mr_role_room(const struct mr_role_store *s, uint64_t *memory, uint64_t *pinned);

struct mr_role_named {
    mr_object_id id;
    char address[MR_ADDRESS_BYTES_MAX + 1]; /* address of a store that has the object */
};

/* Finds the object whose name is `text`. If `text` is an object id, only sets `out->id`. */
int mr_role_find(
    const struct mr_role_store *s, const char *text, struct mr_role_named *out, struct mr_error *e);

/* Seals the draft (an object that is being written), persists the object if `to_disk` is true, and
 * gives the object the name `name`. Sets `*out` to the id. After an error the object is dropped. */
int mr_role_save(const struct mr_role_store *s, struct mr_store_draft *draft, const char *name,
    bool to_disk, mr_object_id *out, struct mr_error *e);
int mr_role_unname(const struct mr_role_store *s, const char *name, struct mr_error *e);
