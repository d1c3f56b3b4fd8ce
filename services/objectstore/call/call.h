/* One gRPC call and its questions. A handler asks the core, the shared memory, the directory, the
 * converter or another store, and passes a function `then`, which continues the call. A call has at
 * most one open question. The answer runs `then` on the gRPC thread, unless the RPC has ended. A
 * call is freed when its RPC has ended and no question is open. Private to services/objectstore.
 *
 * The questions to the directory are in lookup.h. Owned by the gRPC thread. */
#pragma once

#include "rpc/util/pb.h"
#include "services/objectstore/call/state.h"

#include <millrace/v1/objects.pb-c.h>

struct naming; /* defined in api/naming.c */
struct remote; /* defined in cluster/remote.c */
struct mr_ostore_call;
typedef void (*mr_ostore_call_fn)(struct mr_ostore_call *call);

struct mr_ostore_call {
    struct mr_service *sv;
    struct mr_rpc_call *rpc; /* NULL: the RPC has ended */
    bool open;               /* a question has no answer yet */
    bool forced;             /* only in a Delete: the object is deleted although it has holders */
    bool failed; /* the call was answered with an error; more messages may still arrive */
    mr_ostore_call_fn then; /* continues the call with the answer */
    const char *wanted;     /* the name that mr_ostore_call_find_id looks up */
    /* called when mr_ostore_call_find_id has found the object of the name */
    mr_ostore_call_fn wanted_by;
    void (*fini)(struct mr_ostore_call *call); /* releases `more`; may be NULL */
    void *more;                                /* the handler's own state */
    struct naming *naming;
    Millrace__V1__ObjectInfo *info; /* the reply, which is sent when the directory has the entry */
    struct remote *remote;
    struct mr_pb_arena arena; /* memory of the request and the reply */

    /* The last answer: */
    int err;
    struct mr_error error; /* the sentence for the user, if `err` is an error */
    mr_object_id id;
    struct mr_ask ask;
    struct mr_store_view view; /* released with the call */
    struct mr_name_record *names;
    size_t names_count;
    bool names_more;
    struct mr_str place; /* address of the store that has the object; empty: unknown */
};

#define MR_OSTORE_CALL_ARENA_MAX ((size_t)64 << 20)

/* Makes the call and sets it as the context of the RPC. Called in on_open. */
struct mr_ostore_call *mr_ostore_call_new(struct mr_rpc_call *rpc);
struct mr_ostore_call *mr_ostore_call_of(const struct mr_rpc_call *rpc);
/* Called in on_done. Frees the call at once, or, if a question is open, after its answer. */
void mr_ostore_call_over(struct mr_ostore_call *call);
/* Returns zeroed memory of the call's arena. */
void *mr_ostore_call_take(struct mr_ostore_call *call, size_t bytes);
/* Returns a copy of `s` in the call's arena. */
char *mr_ostore_call_text(struct mr_ostore_call *call, struct mr_str s);

void mr_ostore_call_reply(struct mr_ostore_call *call, const ProtobufCMessage *m);
void mr_ostore_call_fail(struct mr_ostore_call *call, int code, const char *fmt, ...)
    MR_PRINTF(3, 4);
/* Fails the call with call->error. */
void mr_ostore_call_fail_error(struct mr_ostore_call *call);
/* Sets call->err and call->error: the object is not in this store. */
void mr_ostore_call_unknown(struct mr_ostore_call *call);
/* Does the same as mr_ostore_call_unknown, and fails the call. */
void mr_ostore_call_fail_unknown(struct mr_ostore_call *call);

/* Checks of a request message. When a check fails, the call is answered with an error, and the
 * result is NULL or false. mr_ostore_call_parse_id sets call->id. `field`: the field that the error
 * text names. */
void *mr_ostore_call_request(
    struct mr_ostore_call *call, struct mr_rpc_message *m, const ProtobufCMessageDescriptor *type);
bool mr_ostore_call_parse_id(struct mr_ostore_call *call, const char *field, const char *text);
bool mr_ostore_call_check_name(struct mr_ostore_call *call, const char *field, const char *name);

/* Questions to the core. mr_ostore_call_ask sends call->ask, which the caller has filled in. */
void mr_ostore_call_ask(struct mr_ostore_call *call, enum mr_ask_type type, mr_ostore_call_fn then);
void mr_ostore_call_stat(struct mr_ostore_call *call, mr_ostore_call_fn then);
void mr_ostore_call_event(
    struct mr_ostore_call *call, enum mr_ostore_event_type type, mr_ostore_call_fn then);

/* Pins the object call->id in call->view. `source`: address of a store that has the object, or
 * NULL. */
void mr_ostore_call_get(
    struct mr_ostore_call *call, const char *source, mr_duration timeout, mr_ostore_call_fn then);
/* Continues calls whose gets have ended, and returns their number. The caller repeats this until
 * the result is 0. */
size_t mr_ostore_calls_got(struct mr_service *sv);

/* Used by other modules for questions of their own. mr_ostore_call_begin opens the question on the
 * gRPC thread. The other module sets call->err and call->error. Then it closes the question:
 * mr_ostore_call_end on the gRPC thread, mr_ostore_call_end_soon on any thread. */
void mr_ostore_call_begin(struct mr_ostore_call *call, mr_ostore_call_fn then);
void mr_ostore_call_end(struct mr_ostore_call *call);
void mr_ostore_call_end_soon(struct mr_ostore_call *call);
