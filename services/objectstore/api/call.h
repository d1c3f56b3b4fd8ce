/* A call under way, as a sequence of questions: of the core, of memory, of the directory, of the
 * formatter. One question at a time; its answer calls `then` on the gRPC thread, unless the call is
 * over by then. An op is freed when its call is over and nothing it asked is open. */
#pragma once

#include "host/later.h"
#include "host/stats.h"
#include "rpc/client.h"
#include "host/allowance.h"
#include "rpc/util/auth.h"
#include "rpc/loop.h"
#include "rpc/util/pb.h"
#include "services/objectstore/control/directory.h"
#include "services/objectstore/api/service.h"
#include "store/object/format/format.h"

#include <millrace/v1/objects.pb-c.h>
#include <stdatomic.h>

struct mr_formatter;
struct mr_puller;
struct mr_helper;
struct mr_sums_cache;
struct mr_scheduler_link;
struct mr_service {
    struct mr_shell *sh;
    struct name_walk *walk; /* waits for the directory to come back */
    mr_time walk_at;
    bool names_walked; /* every name has said what it holds */
    struct mr_service_config config;
    char *address; /* for other nodes */
    struct mr_rpc_auth *auth;
    struct mr_stats *stats;
    struct mr_store *self;
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_inbox *inbox;
    struct mr_later later; /* what the gRPC thread found no room for in it */
    struct mr_names *names;
    struct mr_places *places;
    struct mr_formatter *formatter;
    struct mr_puller *puller;
    struct mr_helper *hasher;  /* of what leaves */
    struct mr_helper *checker; /* of what arrives */
    uint32_t puller_pulls;     /* under way */
    struct mr_sums_cache *sums;
    struct mr_scheduler_link *link;
    _Atomic bool stopping;
    struct mr_list leases;
    struct mr_list persisting; /* struct mr_persisting */
    uint64_t puts, gets, pulls_served;
    struct mr_allowance *uploads; /* bodies that are no objects yet: outside of the budget */
};

struct naming; /* of names.c */
struct remote; /* of remote.c */
struct mr_op;
typedef void (*mr_op_fn)(struct mr_op *op);

struct mr_op {
    struct mr_service *sv;
    struct mr_rpc_call *call; /* NULL: over */
    bool open;                /* a question is */
    bool forced;              /* of a Delete */
    bool failed;              /* the call was answered with an error; more may still arrive */
    mr_op_fn then;
    const char *wanted; /* a name to look up, for: */
    mr_op_fn wanted_by;
    void (*fini)(struct mr_op *op); /* of `more`, may be NULL */
    void *more;                     /* the handler's own */
    struct naming *naming;
    Millrace__V1__ObjectInfo *info; /* to reply, once its place is told */
    struct remote *remote;
    struct mr_pb_arena arena; /* of the request and the reply */

    int err; /* of the last answer; the sentence in `error` */
    struct mr_error error;
    mr_object_id id;
    struct mr_ask ask;
    struct mr_store_view view; /* released with the op */
    struct mr_name_record *names;
    size_t names_count;
    bool names_more;
    struct mr_str place; /* address of the store that has it; empty: unknown */
};
#define MR_OP_ARENA_MAX ((size_t)64 << 20)
struct mr_op *mr_op_new(struct mr_rpc_call *call); /* in on_open; becomes the call's context */
struct mr_op *mr_op_of(const struct mr_rpc_call *call);
void mr_op_over(struct mr_op *op); /* in on_done */
void *mr_op_take(struct mr_op *op, size_t bytes);
char *mr_op_text(struct mr_op *op, struct mr_str s);
void mr_op_fail(struct mr_op *op, int code, const char *fmt, ...) MR_PRINTF(3, 4);
void mr_op_fail_error(struct mr_op *op); /* with op->error */

/* For methods with one request message: unpacks it, or fails the call and returns NULL. */
void *mr_op_request(
    struct mr_op *op, struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type);
/* Object ids as users write them; fails the call and returns false. */
bool mr_op_parse_id(struct mr_op *op, const char *field, const char *text);
bool mr_op_check_name(struct mr_op *op, const char *field, const char *name);
/* op->id becomes what `text` (of the request) means, an id or "name:" and a name, or the call
 * fails. */
void mr_op_find_id(struct mr_op *op, const char *field, const char *text, mr_op_fn then);

/* Questions. */
void mr_op_ask(struct mr_op *op, enum mr_ask_type type, mr_op_fn then); /* with op->ask filled */
void mr_op_stat(struct mr_op *op, mr_op_fn then);
void mr_op_event(struct mr_op *op, enum mr_ostore_event_type type, mr_op_fn then);
void mr_op_get(struct mr_op *op, const char *source, mr_duration timeout, mr_op_fn then);
void mr_op_resolve(struct mr_op *op, struct mr_str name, mr_op_fn then);
void mr_op_unname(struct mr_op *op, struct mr_str name, mr_op_fn then);
void mr_op_set_name(
    struct mr_op *op, const struct mr_name_record *record, bool replace, mr_op_fn then);
void mr_op_list_names(
    struct mr_op *op, struct mr_str prefix, struct mr_str after, uint32_t n_max, mr_op_fn then);
void mr_op_find(struct mr_op *op, mr_op_fn then);  /* op->place */
void mr_op_begin(struct mr_op *op, mr_op_fn then); /* for questions asked elsewhere … */
void mr_op_end(struct mr_op *op);                  /* … on the gRPC thread, when answered */

/* From any thread: `run(p)` on the gRPC thread, soon. */
void mr_service_post(struct mr_service *sv, void (*run)(void *p), void *p);
/* What Stat, List, Put and their like show; texts and arrays live in the op's arena. */
Millrace__V1__ObjectInfo *mr_op_info(struct mr_op *op, const struct mr_ostore_info *info);
/* kind, summary, dtype and shape of the value in `bytes`, as far as it is one. */
void mr_op_describe(struct mr_op *op, struct mr_str bytes, Millrace__V1__ObjectInfo *out);
/* op->id is persisted, or deleted, by the store of its node; `method` is the path of Objects. */
void mr_op_remote(struct mr_op *op, const char *method, mr_op_fn then);
/* Tells the cluster that this node has op->id, so that other nodes' stores find it. An object is
 * one also while Redis is away: never an error. */
void mr_op_place(struct mr_op *op, const Millrace__V1__ObjectInfo *info, mr_op_fn then);
const char *mr_op_why_not_written(struct mr_op *op); /* by op->err of a PERSIST */
/* The object is durable now: so are its names. */
void mr_names_persisted(struct mr_names *n, const Millrace__V1__ObjectInfo *info);
uint64_t mr_name_key(struct mr_str name); /* of MR_HOLD_NAME */
void mr_op_name_object(struct mr_op *op, struct mr_str name, const ProtobufCBinaryData *definition,
    bool replace, mr_op_fn then); /* op->id, which is here; on success op->names[0] */

/* Keeps what a view pins for a while after its op; takes the pin. */
void mr_lease_view(struct mr_service *sv, struct mr_store_view *view, mr_duration d);
void mr_on_name(struct mr_rpc_call *call, struct mr_rpc_message *m); /* names.c */
void mr_on_resolve(struct mr_rpc_call *call, struct mr_rpc_message *m);
void mr_on_unname(struct mr_rpc_call *call, struct mr_rpc_message *m);
void mr_on_renamed(struct mr_rpc_call *call, struct mr_rpc_message *m);
void mr_on_names(struct mr_rpc_call *call, struct mr_rpc_message *m);
void mr_on_where(struct mr_rpc_call *call, struct mr_rpc_message *m); /* locate.c */
extern const struct mr_rpc_handler mr_put_handler;                    /* upload.c */
extern const struct mr_rpc_handler mr_get_handler;                    /* download.c */
extern const struct mr_rpc_handler mr_pull_handler;                   /* pull_send.c */
extern const struct mr_rpc_service mr_objects_service;                /* objects.c */
extern const struct mr_rpc_service mr_metrics_service;
