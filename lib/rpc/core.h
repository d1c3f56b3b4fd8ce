/* Private to lib/rpc: the structs that loop, call, server and client share. Only this header shows
 * gRPC's types. No file outside lib/rpc includes it. */
#pragma once

#include "base/list.h"
#include "rpc/call_state.h"
#include "rpc/client.h"
#include "rpc/loop.h"
#include "rpc/server.h"
#include "rpc/tls.h"

#include <grpc/grpc.h>
#include <pthread.h>
#include <stdatomic.h>

#define MR_RPC_WINDOW_BYTES (4 << 20) /* flow-control window where the link is not measured */

/* Every tag on the completion queue is one of these. */
struct mr_rpc_tag {
    void (*done)(struct mr_rpc_tag *tag, bool ok);
};

enum mr_rpc_batch {       /* what a call may have on the completion queue, one of each at a time */
    MR_RPC_BATCH_OPEN,    /* client: the peer's initial metadata */
    MR_RPC_BATCH_RECEIVE, /* a message */
    MR_RPC_BATCH_SEND,
    MR_RPC_BATCH_CLOSE, /* server: RECV_CLOSE; client: RECV_STATUS */
    MR_RPC_BATCHES,
};

struct mr_rpc_slot {
    struct mr_rpc_call *call; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

struct mr_rpc_loop {
    grpc_completion_queue *cq;
    grpc_channel *wake_channel; /* a lame channel, for wake_call */
    grpc_call *wake_call;       /* an empty batch on wake_call puts wake_tag on the queue */
    struct mr_rpc_tag wake_tag;
    _Atomic bool wake_under_way;
    _Atomic uintptr_t runner; /* the thread inside mr_rpc_loop_run; 0: none */
    bool woken;
    bool is_eager;         /* polls before it sleeps, once waits have been short */
    uint32_t short_waits;  /* in a row */
    mr_time crowded_until; /* another thread wants this processor: no polling until then */
    bool turn_is_young;    /* the first events after a sleep: latency before throughput */
    struct mr_list dirty;  /* calls that have something to send */
    struct mr_list owed;   /* calls whose next message is asked for a little later */
    struct mr_rpc_slot *slots;
    uint32_t slots_count;
    uint32_t slots_free;
    uint32_t calls_count;
    uint32_t owners_count; /* servers and channels on this loop */
    void (*turn)(void *ctx);
    void *turn_ctx;
    struct mr_rpc_side side;
};

struct mr_rpc_message {
    grpc_byte_buffer *bytes;
    unsigned char *joined;
    struct mr_str *parts;
    size_t parts_count;
};

struct mr_rpc_queue { /* a ring of messages to send */
    grpc_byte_buffer **items;
    uint32_t head, count, room;
    size_t bytes;
};

struct mr_rpc_outgoing { /* metadata to send; name and value are owned slices */
    grpc_metadata *items;
    size_t count;
};

struct mr_rpc_call {
    struct mr_rpc_loop *loop;
    grpc_call *grpc;
    mr_rpc_call_id id;
    struct mr_rpc_server *server;   /* of a server call */
    struct mr_rpc_channel *channel; /* of a client call; holds a reference */
    const struct mr_rpc_method *method;
    const struct mr_rpc_handler *handler;
    void *context;
    void (*on_freed)(struct mr_rpc_call *call); /* the server counts */
    struct mr_list dirty_node;                  /* on loop->dirty */
    struct mr_list owed_node;                   /* on loop->owed */
    struct mr_list owner_node;                  /* on the server's or channel's list */

    struct mr_rpc_state state;
    struct mr_rpc_tag tags[MR_RPC_BATCHES];
    uint32_t batches; /* on the completion queue: 1 << MR_RPC_BATCH_… */

    grpc_slice path;
    mr_time deadline;
    char *peer;
    grpc_metadata_array metadata_in, trailing_in;
    struct mr_rpc_outgoing initial_out, trailing_out;

    grpc_byte_buffer *received;
    bool auto_read;   /* the next message is asked for after each delivery */
    bool read_wanted; /* one message is asked for, once */
    bool defers_read; /* the next read may wait until our answer is sent */
    bool has_waited;  /* its deferred read has waited for one sleep of the loop */
    bool ours;        /* health and reflection: not counted in the server's calls_count */
    bool one_reply;   /* client: the reply comes with the status */

    struct mr_rpc_queue queue;
    bool was_full;     /* on_writable is owed */
    bool initial_sent; /* our initial metadata: with the first batch, also when that is the end */
    uint32_t initial_flags;
    int cancelled; /* server: written by gRPC when its RECV_CLOSE completes */

    grpc_status_code status; /* to send, or received */
    grpc_slice status_text;
};

static inline bool mr_rpc_call_has_batch(const struct mr_rpc_call *call, enum mr_rpc_batch batch)
{
    return call->batches >> batch & 1;
}

/* loop.c */
gpr_timespec mr_rpc_timespec(mr_time t);
mr_time mr_rpc_time(gpr_timespec t);

/* call.c */
struct mr_rpc_call *mr_rpc_call_new(struct mr_rpc_loop *loop, grpc_call *grpc);
void mr_rpc_call_mark(
    struct mr_rpc_call *call); /* puts it on loop->dirty: it has something to send */
void mr_rpc_call_flush(struct mr_rpc_call *call);
void mr_rpc_call_pump(
    struct mr_rpc_call *call); /* asks for the next message, if the state allows */
void mr_rpc_call_batch(
    struct mr_rpc_call *call, const grpc_op *ops, size_t ops_count, enum mr_rpc_batch batch);
/* The tag of a batch came back: returns its call. */
struct mr_rpc_call *mr_rpc_call_returned(struct mr_rpc_tag *tag, enum mr_rpc_batch batch);
void mr_rpc_call_drop_queue(struct mr_rpc_call *call);
/* call->received to on_message. The caller moves the call on from DELIVERING. */
void mr_rpc_call_deliver(struct mr_rpc_call *call);
void mr_rpc_call_end_if_over(struct mr_rpc_call *call); /* no batch is left: on_done, then free */
int mr_rpc_outgoing_add(struct mr_rpc_outgoing *o, const char *name, struct mr_str value);

/* message.c */
grpc_byte_buffer *mr_rpc_bytes_of(const struct mr_rpc_part *parts, size_t parts_count);
void mr_rpc_message_reset(struct mr_rpc_message *m);

/* tls.c: the TLS settings for an address. NULL: no TLS. `own` goes before the process's. */
struct mr_rpc_tls *mr_rpc_tls_for(struct mr_rpc_tls *own, const char *address);
grpc_server_credentials *mr_rpc_tls_server_credentials(struct mr_rpc_tls *tls);
grpc_channel_credentials *mr_rpc_tls_channel_credentials(struct mr_rpc_tls *tls);

/* tls_error.c: a connection to a TCP port failed with gRPC's text `why`. True: TLS is the reason,
 * or may be, and `out` has the sentence for the user. */
bool mr_rpc_tls_words(
    const char *address, const struct mr_rpc_tls *tls, struct mr_str why, struct mr_error *out);
/* Is this line of gRPC's log about a failed handshake? If so, logs it as tls.refused, at most once
 * a second. */
bool mr_rpc_tls_notice(const char *text);

/* client.c */
void mr_rpc_channel_put(struct mr_rpc_channel **channel);
