/* One HTTP request that waits for a service. An HTTP thread and the gRPC thread share it.
 *
 * The HTTP thread makes the exchange and posts START to the bridge, which owns the exchange from
 * then on. The HTTP thread takes replies from the exchange's queue. It posts LEAVE when it will not
 * touch the exchange again. The bridge frees the exchange after END and LEAVE.
 *
 * The usual order of what each thread sends, from left to right; (…) is not always sent:
 *
 *   HTTP thread posts:    START, (a CHUNK for each further piece of an upload, HALF_CLOSE),
 *                         (a CREDIT for each MESSAGE and HEARTBEAT), LEAVE
 *   gRPC thread replies:  (a TAKEN for each CHUNK), (OPENED), (MESSAGE or HEARTBEAT …), END */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "host/parker.h"
#include "host/inbox.h"
#include "proto/methods.h"
#include "rpc/client.h"
#include "rpc/util/auth.h"
#include "rpc/util/token_file.h"

#define MR_EXCHANGE_WINDOW 4 /* limit of messages that wait for the HTTP thread */
#define MR_EXCHANGE_CHUNKS 4 /* limit of pieces of a body that wait for the service */
#define MR_EXCHANGE_REPLIES 16

enum mr_reply_kind {
    /* A message. After its use the HTTP thread posts a CREDIT, so that the next message is read. */
    MR_REPLY_MESSAGE,
    MR_REPLY_OPENED,    /* the call runs, and the service has sent nothing for a while */
    MR_REPLY_HEARTBEAT, /* a sign of life in a silent stream; it needs a CREDIT, too */
    MR_REPLY_TAKEN,     /* gRPC has sent one CHUNK, so there is room for another */
    MR_REPLY_END,       /* the last reply; error, grpc_code, text and details are set */
};

struct mr_reply {
    enum mr_reply_kind kind;
    struct mr_rpc_message *message; /* given */
};

/* Which replies have been queued for the HTTP thread so far. exchange.c has the table of moves. */
enum mr_exchange_state {
    MR_EXCHANGE_SILENT,   /* neither OPENED nor a MESSAGE was queued */
    MR_EXCHANGE_OPENED,   /* OPENED was queued */
    MR_EXCHANGE_ANSWERED, /* a MESSAGE was queued */
    /* The call has ended and END was queued, or LEAVE has come and no call runs. */
    MR_EXCHANGE_OVER,
};

struct mr_exchange {
    /* The members from here to `wake_ctx` are set before START. Afterwards the gRPC thread may
     * change `request`, and the other members are constant. */
    enum mr_proto_backend backend;
    const struct mr_proto_method *method;
    struct mr_buf request; /* the first message to the service */
    bool more;             /* true: CHUNKs follow after the first message */
    bool is_stream;        /* true: the service sends many replies */
    bool is_events;        /* true: the stream lasts as long as the client listens */
    bool wants_heartbeats;
    /* True: the exchange collects the metrics of all services and calls no `method`. */
    bool is_metrics;
    mr_duration timeout; /* 0: none */
    /* Number of the request's field `wait_s` (a double), which says how long the service may wait;
     * 0: the request has no such field. */
    uint32_t wait_field;
    /* True: the call is idempotent. If the service is away, the bridge repeats the call until
     * `wait_until`. */
    bool may_repeat;
    /* If a stream of events breaks, the bridge resumes it when the service comes back. These are
     * numbers of protobuf fields. resume_field: the request's field for the id of the last event.
     * 0: the stream cannot be resumed. event_field: the reply's field for the id of its event. */
    uint32_t resume_field;
    /* True: each reply of the stream is a whole state, so the stream needs no id to go on after it
     * broke. A stream whose request has no fields is such a stream. */
    bool has_states;
    uint32_t event_field;
    struct mr_token_holder user;
    /* True: the request is for the store number `store`. False: any object store will do. */
    bool of_one_store;
    uint32_t store;
    /* Descriptor of the connection, to notice that the client has closed it; -1: unknown. */
    int fd;
    void (*wake)(void *ctx);
    void *wake_ctx;

    struct mr_parker parker; /* when it is parked, the HTTP side sleeps until `wake` */
    struct mr_inbox *replies;

    uint32_t stores_count; /* number of known stores, written when the call starts */
    /* Set with END: the call ended because the gateway stops. */
    bool is_shutdown;
    /* Set with a MESSAGE: the gateway stops, and has ended the wait early. */
    bool is_cut;

    /* The members below are written before MR_REPLY_END and read after it. */
    int error; /* MR_OK: the call succeeded */
    int grpc_code;
    struct mr_buf text; /* the sentence of the error, or the collected metrics */
    struct mr_buf details;

    /* The members below are used by the gRPC thread only. */
    struct mr_bridge *bridge;
    struct mr_list live;
    mr_rpc_call_id call;
    enum mr_exchange_state state;
    uint32_t unused;         /* MESSAGEs and HEARTBEATs for which no CREDIT has come */
    uint32_t chunks_waiting; /* chunks that were sent and are not TAKEN yet */
    mr_time last_reply;
    struct mr_buf last_id; /* id of the last event that had an id */
    /* Time of the next attempt to call a service that is away; 0: no attempt is planned. */
    mr_time reopen_at;
    mr_time give_up_at;
    /* Time until which the service may wait before it answers (wait_field); 0: it does not wait. */
    mr_time wait_until;
    bool is_left; /* true: LEAVE has come */
};

struct mr_exchange *mr_exchange_new(void);
void mr_exchange_free(struct mr_exchange **x); /* frees what is still queued, too */

/* Moves the exchange to another state, which exchange.c's table must allow. Called on the gRPC
 * thread. */
void mr_exchange_move(struct mr_exchange *x, enum mr_exchange_state to);

/* A piece of an uploaded body. It becomes one message of the request's type. */
struct mr_chunk {
    unsigned char *bytes; /* allocated with mr_alloc; owned */
    size_t n;
    /* Tags and lengths that precede the bytes in the message. */
    unsigned char prefix[32];
    size_t prefix_n;
};

/* Makes a chunk: a request message of the route's method in which only the data of the HttpBody is
 * set. */
struct mr_chunk *mr_chunk_new(const struct mr_route *route, unsigned char **bytes, size_t n);
void mr_chunk_free(void *chunk);
