/* One HTTP request that waits for a service. An HTTP thread and the gRPC thread share it.
 *
 * The HTTP thread makes the exchange and posts START to the bridge, which owns the exchange from
 * then on. The HTTP thread takes replies from the exchange's queue. It posts LEAVE when it will not
 * touch the exchange again. The bridge frees the exchange after END and LEAVE.
 *
 *   HTTP thread   START ─▶ (CHUNK…, HALF_CLOSE) ─▶ CREDIT… ─▶ LEAVE
 *   gRPC thread        ◀─ TAKEN… ◀─ OPENED ◀─ MESSAGE… ◀─ END */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "host/parker.h"
#include "host/inbox.h"
#include "proto/methods.h"
#include "rpc/client.h"
#include "rpc/util/auth.h"
#include "rpc/util/token_file.h"

#define MR_EXCHANGE_WINDOW 4 /* messages that wait for the HTTP thread */
#define MR_EXCHANGE_CHUNKS 4 /* pieces of a body that wait for the service */
#define MR_EXCHANGE_REPLIES 16

enum mr_reply_kind {
    MR_REPLY_MESSAGE,   /* the HTTP thread posts a CREDIT after use, so that the next is read */
    MR_REPLY_OPENED,    /* the call runs, and the service has sent nothing for a while */
    MR_REPLY_HEARTBEAT, /* as a MESSAGE, without content */
    MR_REPLY_TAKEN,     /* gRPC has sent one CHUNK: there is room for another */
    MR_REPLY_END,       /* last: error, grpc_code, text and details are set */
};

struct mr_reply {
    enum mr_reply_kind kind;
    struct mr_rpc_message *message; /* given */
};

/* How far the answer has come. exchange.c has the table of moves. */
enum mr_exchange_state {
    MR_EXCHANGE_SILENT,   /* the HTTP thread has heard nothing */
    MR_EXCHANGE_OPENED,   /* OPENED was queued */
    MR_EXCHANGE_ANSWERED, /* a MESSAGE was queued */
    MR_EXCHANGE_OVER,     /* END was queued, or LEAVE came while no call ran */
};

struct mr_exchange {
    /* Set before START, constant after. */
    enum mr_proto_backend backend;
    const struct mr_proto_method *method;
    struct mr_buf request; /* the first message */
    bool more;             /* CHUNKs follow */
    bool is_stream;        /* many replies */
    bool is_events;        /* a stream that lasts as long as the client listens */
    bool wants_heartbeats;
    bool is_metrics;     /* collects the metrics of all services instead of calling `method` */
    mr_duration timeout; /* 0: none */
    uint32_t wait_field; /* of the request: how long the service may wait (double); 0: none */
    bool may_repeat; /* the call is idempotent: the bridge retries it while the service is away */
    /* A stream of events that the bridge resumes when its service comes back. resume_field is the
     * request's field for the id of the last event, event_field the replies' field with an event's
     * id. 0: the stream cannot be resumed. */
    uint32_t resume_field;
    uint32_t event_field;
    struct mr_token_holder user;
    bool of_one_store; /* the request is for `store`, not for any object store */
    uint32_t store;
    int fd; /* of the connection, to notice that the client has closed it; -1: unknown */
    void (*wake)(void *ctx);
    void *wake_ctx;

    struct mr_parker parker; /* parked: the HTTP side sleeps until `wake` */
    struct mr_inbox *replies;

    uint32_t stores_count; /* written when the call starts */
    bool is_shutdown;      /* with END: the call ended because the gateway stops */
    bool is_cut;           /* with a MESSAGE: the gateway stops, and ended the wait early */

    /* Written before MR_REPLY_END, read after it. */
    int error; /* MR_OK: the call succeeded */
    int grpc_code;
    struct mr_buf text; /* the error's sentence; the metrics, if they were asked for */
    struct mr_buf details;

    /* The gRPC thread's. */
    struct mr_bridge *bridge;
    struct mr_list live;
    mr_rpc_call_id call;
    enum mr_exchange_state state;
    uint32_t unused;         /* replies without CREDIT */
    uint32_t chunks_waiting; /* sent, not yet TAKEN */
    mr_time last_reply;
    struct mr_buf last_id; /* of the last event that had an id */
    mr_time reopen_at;     /* the next attempt, while the service is away; 0: a call runs */
    mr_time give_up_at;
    mr_time wait_until; /* when the service's wait ends; 0: it does not wait */
    bool is_left;       /* LEAVE came */
};

struct mr_exchange *mr_exchange_new(void);
void mr_exchange_free(struct mr_exchange **x); /* with what is still queued */

void mr_exchange_move(struct mr_exchange *x, enum mr_exchange_state to); /* the gRPC thread */

/* A piece of an uploaded body. It becomes one message of the request's type. */
struct mr_chunk {
    unsigned char *bytes; /* given, of mr_alloc */
    size_t n;
    unsigned char prefix[32]; /* tags and lengths that precede the bytes on the wire */
    size_t prefix_n;
};

/* A request message of the route's method in which only the data of the HttpBody is set. */
struct mr_chunk *mr_chunk_new(const struct mr_route *route, unsigned char **bytes, size_t n);
void mr_chunk_free(void *chunk);
