/* A call under way: a sequence of questions to the core, to memory, to the directory and to the
 * converter. A call has at most one open question. The answer runs `then` on the gRPC thread,
 * unless the RPC has ended. A call is freed when its RPC has ended and no question is open.
 * Private to services/objectstore/api. */
#pragma once

#include "host/deferred.h"
#include "host/os/stats.h"
#include "rpc/client.h"
#include "host/limit/allowance.h"
#include "rpc/util/auth.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"
#include "services/objectstore/control/directory.h"
#include "services/objectstore/api/service.h"
#include "store/object/format/format.h"

#include <millrace/v1/objects.pb-c.h>
#include <stdatomic.h>

struct mr_converter;
struct mr_pull_receiver;
struct mr_offload;
struct mr_checksums_cache;
struct mr_scheduler_session;
struct mr_service {
    struct mr_ostore_shell *sh;
    struct name_walk *walk; /* waits for the directory to come back */
    mr_time walk_at;
    bool names_walked; /* the objects that names hold are known */
    struct mr_service_config config;
    char *address; /* for other nodes */
    struct mr_rpc_auth *auth;
    struct mr_stats *stats;
    struct mr_store *self;
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_inbox *inbox;
    struct mr_deferred later; /* what the gRPC thread found no room for in it */
    struct mr_names *names;
    struct mr_places *places;
    struct mr_converter *converter;
    struct mr_pull_receiver *pull_receiver;
    struct mr_offload *hasher;  /* of what leaves */
    struct mr_offload *checker; /* of what arrives */
    uint32_t pulls_receiving;   /* under way */
    struct mr_checksums_cache *checksums;
    struct mr_scheduler_session *scheduler_session;
    _Atomic bool stopping;
    struct mr_list leases;
    struct mr_list persisting; /* struct mr_persisting */
    uint64_t puts, gets, pulls_served;
    struct mr_allowance *uploads; /* bodies that are no objects yet: outside of the budget */
};

struct naming; /* of names.c */
struct remote; /* of remote.c */
struct mr_ostore_call;
typedef void (*mr_ostore_call_fn)(struct mr_ostore_call *call);

struct mr_ostore_call {
    struct mr_service *sv;
    struct mr_rpc_call *rpc; /* NULL: over */
    bool open;               /* a question is */
    bool forced;             /* of a Delete */
    bool failed;             /* the call was answered with an error; more may still arrive */
    mr_ostore_call_fn then;
    const char *wanted; /* a name to look up, for: */
    mr_ostore_call_fn wanted_by;
    void (*fini)(struct mr_ostore_call *call); /* of `more`, may be NULL */
    void *more;                                /* the handler's own */
    struct naming *naming;
    Millrace__V1__ObjectInfo *info; /* the reply, sent after the directory has the entry */
    struct remote *remote;
    struct mr_pb_arena arena; /* of the request and the reply */

    int err; /* of the last answer; the sentence in `error` */
    struct mr_error error;
    mr_object_id id;
    struct mr_ask ask;
    struct mr_store_view view; /* released with the call */
    struct mr_name_record *names;
    size_t names_count;
    bool names_more;
    struct mr_str place; /* address of the store that has it; empty: unknown */
};
#define MR_OSTORE_CALL_ARENA_MAX ((size_t)64 << 20)
struct mr_ostore_call *mr_ostore_call_new(
    struct mr_rpc_call *rpc); /* in on_open; becomes the call's context */
struct mr_ostore_call *mr_ostore_call_of(const struct mr_rpc_call *rpc);
void mr_ostore_call_over(struct mr_ostore_call *call); /* in on_done */
void *mr_ostore_call_take(struct mr_ostore_call *call, size_t bytes);
char *mr_ostore_call_text(struct mr_ostore_call *call, struct mr_str s);
void mr_ostore_call_fail(struct mr_ostore_call *call, int code, const char *fmt, ...)
    MR_PRINTF(3, 4);
void mr_ostore_call_fail_error(struct mr_ostore_call *call); /* with call->error */

/* For methods with one request message: unpacks it, or fails the call and returns NULL. */
void *mr_ostore_call_request(
    struct mr_ostore_call *call, struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type);
/* Object ids as users write them; fails the call and returns false. */
bool mr_ostore_call_parse_id(struct mr_ostore_call *call, const char *field, const char *text);
bool mr_ostore_call_check_name(struct mr_ostore_call *call, const char *field, const char *name);
/* call->id becomes what `text` (of the request) means, an id or "name:" and a name, or the call
 * fails. */
void mr_ostore_call_find_id(
    struct mr_ostore_call *call, const char *field, const char *text, mr_ostore_call_fn then);

/* Questions. */
void mr_ostore_call_ask(struct mr_ostore_call *call, enum mr_ask_type type,
    mr_ostore_call_fn then); /* with call->ask filled */
void mr_ostore_call_stat(struct mr_ostore_call *call, mr_ostore_call_fn then);
void mr_ostore_call_event(
    struct mr_ostore_call *call, enum mr_ostore_event_type type, mr_ostore_call_fn then);
void mr_ostore_call_get(
    struct mr_ostore_call *call, const char *source, mr_duration timeout, mr_ostore_call_fn then);
void mr_ostore_call_resolve(
    struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then);
void mr_ostore_call_unname(struct mr_ostore_call *call, struct mr_str name, mr_ostore_call_fn then);
void mr_ostore_call_set_name(struct mr_ostore_call *call, const struct mr_name_record *record,
    bool replace, mr_ostore_call_fn then);
void mr_ostore_call_list_names(struct mr_ostore_call *call, struct mr_str prefix,
    struct mr_str after, uint32_t n_max, mr_ostore_call_fn then);
void mr_ostore_call_find(struct mr_ostore_call *call, mr_ostore_call_fn then); /* call->place */
void mr_ostore_call_begin(
    struct mr_ostore_call *call, mr_ostore_call_fn then); /* for questions asked elsewhere … */
void mr_ostore_call_end(struct mr_ostore_call *call); /* … on the gRPC thread, when answered */

/* From any thread: `run(p)` on the gRPC thread, soon. */
void mr_service_post(struct mr_service *sv, void (*run)(void *p), void *p);
/* What Stat, List, Put and their like show; texts and arrays live in the call's arena. */
Millrace__V1__ObjectInfo *mr_ostore_call_info(
    struct mr_ostore_call *call, const struct mr_ostore_info *info);
/* kind, summary, dtype and shape of the value in `bytes`, as far as it is one. */
void mr_ostore_call_describe(
    struct mr_ostore_call *call, struct mr_str bytes, Millrace__V1__ObjectInfo *out);
/* call->id is persisted, or deleted, by the store of its node; `method` is the path of Objects. */
void mr_ostore_call_remote(struct mr_ostore_call *call, const char *method, mr_ostore_call_fn then);
/* Tells the cluster that this node has call->id, so that other nodes' stores find it. An object is
 * one also while Redis is away: never an error. */
void mr_ostore_call_place(
    struct mr_ostore_call *call, const Millrace__V1__ObjectInfo *info, mr_ostore_call_fn then);
const char *mr_ostore_call_why_not_written(
    struct mr_ostore_call *call); /* by call->err of a PERSIST */
/* The object is durable now: so are its names. */
void mr_names_persisted(struct mr_names *n, const Millrace__V1__ObjectInfo *info);
uint64_t mr_name_key(struct mr_str name); /* of MR_HOLD_NAME */
void mr_ostore_call_name_object(struct mr_ostore_call *call, struct mr_str name,
    const ProtobufCBinaryData *definition, bool replace,
    mr_ostore_call_fn then); /* call->id, which is here; on success call->names[0] */

/* Keeps what a view pins for a while after its call; takes the pin. */
void mr_lease_view(struct mr_service *sv, struct mr_store_view *view, mr_duration d);
void mr_on_name(struct mr_rpc_call *rpc, struct mr_rpc_message *m); /* names.c */
void mr_on_resolve(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_unname(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_renamed(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_names(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
void mr_on_where(struct mr_rpc_call *rpc, struct mr_rpc_message *m); /* locate.c */
extern const struct mr_rpc_handler mr_put_handler;                   /* upload.c */
extern const struct mr_rpc_handler mr_get_handler;                   /* download.c */
extern const struct mr_rpc_handler mr_pull_handler;                  /* pull_send.c */
extern const struct mr_rpc_service mr_objects_service;               /* objects.c */
extern const struct mr_rpc_service mr_metrics_service;
