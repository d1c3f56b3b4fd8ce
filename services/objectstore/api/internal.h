/* The methods of the store's gRPC services, and functions that several methods use, grouped by the
 * file that defines them. Private to services/objectstore/api. All run on the gRPC thread. */
#pragma once

#include "services/objectstore/call/call.h"
#include "services/objectstore/cluster/scheduler_session.h"

extern const struct mr_rpc_service mr_objects_service; /* objects.c */
extern const struct mr_rpc_service mr_metrics_service;
extern const struct mr_rpc_handler mr_put_handler;                     /* upload.c */
extern const struct mr_rpc_handler mr_get_handler;                     /* download.c */
void mr_on_delete(struct mr_rpc_call *rpc, struct mr_rpc_message *m);  /* delete.c */
void mr_on_persist(struct mr_rpc_call *rpc, struct mr_rpc_message *m); /* persist.c */
void mr_on_stats(struct mr_rpc_call *rpc, struct mr_rpc_message *m);   /* stats.c */
void mr_on_metrics(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_name(struct mr_rpc_call *rpc, struct mr_rpc_message *m); /* names.c */
void mr_on_resolve(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_unname(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_names(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_renamed(struct mr_rpc_call *rpc, struct mr_rpc_message *m);

/* persist.c: returns a text that says why a PERSIST failed with call->err. */
const char *mr_ostore_call_why_not_written(struct mr_ostore_call *call);

/* naming.c: gives the name to call->id, an object of this store. If that succeeds, call->names[0]
 * is the new record of the name. `definition`: hash of the computation that made the object, 16
 * bytes; NULL or empty: none. */
void mr_ostore_call_name_object(struct mr_ostore_call *call, struct mr_str name,
    const ProtobufCBinaryData *definition, bool replace, mr_ostore_call_fn then);
/* Called when the name no longer means `was->object`: the store of that object drops the name's
 * hold. */
void mr_ostore_call_let_go(struct mr_ostore_call *call, const struct mr_name_record *was);
/* Called when the object has become durable: marks its names as durable in the directory. */
void mr_naming_persisted(struct mr_service *sv, const Millrace__V1__ObjectInfo *info);
/* Removes the name if it still means this object. Returns without waiting; a failure is ignored. */
void mr_naming_remove(struct mr_service *sv, struct mr_str name, mr_object_id object);

/* parts.c: the objects that one Delete or Persist of a collection acts on. */
struct parts {
    mr_object_id *ids; /* ids of the parts; the collection itself is the last */
    uint64_t *bytes;   /* size of each part */
    uint32_t count;
    uint32_t at;                     /* index of the next part to act on */
    struct mr_persisting persisting; /* used by a Persist */
};
/* Sets call->more to the parts of the object call->id, which was viewed in call->view. An object
 * that is no collection, or that could not be viewed, has itself as its only part. */
void mr_parts_take(struct mr_ostore_call *call);

/* lease.c: keeps the pin of `view` for the time `d`, even if the call ends earlier. Takes the pin
 * out of `view`. */
void mr_lease_add(struct mr_service *sv, struct mr_store_view *view, mr_duration d);
/* Releases the pins whose time is over. Returns the time when the next pin is to be released, or
 * MR_NEVER if no pin is left. */
mr_time mr_leases_end(struct mr_service *sv, mr_time now);

/* name_walk.c: reads all names when the store starts, and tells them to the core. The core then
 * keeps each object that has a name. */
void mr_name_walk_start(struct mr_service *sv);
/* Continues a walk that Redis has interrupted. Returns the time of the next call, or MR_NEVER if no
 * walk waits for Redis. */
mr_time mr_name_walk_turn(struct mr_service *sv, mr_time now);
void mr_name_walk_stop(struct mr_service *sv);
