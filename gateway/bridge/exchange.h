/* One request that waits for a service: the meeting point of an HTTP thread and the gRPC thread.
 * The HTTP thread makes it, posts it to the bridge, and takes replies from its queue; the bridge
 * owns it from the start on and frees it after the HTTP thread has left.
 *
 *   HTTP thread   START ─▶ (CHUNK…, HALF_CLOSE) ─▶ CREDIT… ─▶ LEAVE
 *   gRPC thread        ◀─ TAKEN… ◀─ OPENED ◀─ MESSAGE… ◀─ END */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "host/sleep_gate.h"
#include "host/inbox.h"
#include "proto/methods.h"
#include "rpc/client.h"
#include "rpc/util/auth.h"
#include "rpc/util/token_file.h"

#define MR_EXCHANGE_WINDOW 4 /* messages that wait for the HTTP thread */
#define MR_EXCHANGE_CHUNKS 4 /* pieces of a body that wait for the service */
#define MR_EXCHANGE_REPLIES 16

enum mr_reply_kind {
    MR_REPLY_MESSAGE,   /* give a CREDIT when it is used up */
    MR_REPLY_OPENED,    /* a stream exists, though nothing has come yet */
    MR_REPLY_HEARTBEAT, /* as a MESSAGE, without content */
    MR_REPLY_TAKEN,     /* one CHUNK has left */
    MR_REPLY_END,       /* last: error, grpc_code, text and details are set */
};

struct mr_reply {
    enum mr_reply_kind kind;
    struct mr_rpc_message *message; /* given */
};

struct mr_exchange {
    /* Set before START, constant after. */
    enum mr_proto_backend backend;
    const struct mr_proto_method *method;
    struct mr_buf request; /* the first message */
    bool more;             /* CHUNKs follow */
    bool is_stream;        /* many replies */
    bool is_events;        /* … for as long as the client listens */
    bool wants_heartbeats;
    bool is_metrics;     /* not a call of `method`, but of every service's counters */
    mr_duration timeout; /* 0: none */
    uint32_t wait_field; /* of the request, that says how long to wait (double); 0: it has none */
    bool may_repeat;     /* asking twice is as good as once: done so while the service is away */
    /* A stream of events that goes on by itself when its service comes back: the field of the
     * request that says after which event, and the replies' with the event's id. 0: it does not. */
    uint32_t resume_field;
    uint32_t event_field;
    struct mr_token_holder user;
    bool of_one_store; /* `store` is meant, not any */
    uint32_t store;
    int fd; /* of the connection, to notice that the client has gone; -1: unknown */
    void (*wake)(void *ctx);
    void *wake_ctx;

    struct mr_sleep_gate gate; /* closed: the HTTP side sleeps until `wake` */
    struct mr_inbox *replies;

    uint32_t stores_count; /* written at the start of the call */
    bool is_farewell;      /* with END: it ended because the gateway stops */
    bool is_cut;           /* with a MESSAGE: the wait was ended by us, not by time */

    /* Written before MR_REPLY_END, read after it. */
    int error; /* MR_OK: the service was content */
    int grpc_code;
    struct mr_buf text; /* the sentence; of metrics, when MR_OK, all of them */
    struct mr_buf details;

    /* The gRPC thread's. */
    struct mr_bridge *bridge;
    struct mr_list live;
    mr_rpc_call_id call;
    uint32_t unused;         /* replies without CREDIT */
    uint32_t chunks_waiting; /* sent, not yet TAKEN */
    mr_time last_reply;
    struct mr_buf last_id; /* of the last event that had one */
    mr_time reopen_at;     /* 0: the call is under way */
    mr_time give_up_at;
    mr_time wait_until;
    bool has_message;
    bool is_opened;
    bool is_over; /* END was queued */
    bool is_left; /* LEAVE came */
};

struct mr_exchange *mr_exchange_new(void);
void mr_exchange_free(struct mr_exchange **x); /* with what is still queued */

/* A piece of an HttpBody: `bytes` (given, mr_alloc) become one message of the request type. */
struct mr_chunk {
    unsigned char *bytes;
    size_t n;
    unsigned char prefix[32]; /* tags and lengths before the bytes */
    size_t prefix_n;
};

/* The field `body` of `method`'s request, with only its data. */
struct mr_chunk *mr_chunk_new(const struct mr_route *route, unsigned char **bytes, size_t n);
void mr_chunk_free(void *chunk);
