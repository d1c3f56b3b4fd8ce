/* Private to lib/rpc: the structs that the loop, calls, the server and the client share. Only files
 * of lib/rpc include this header, so only they see gRPC's types. */
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

/* Bytes of the flow-control window on links whose bandwidth is not measured. */
#define MR_RPC_WINDOW_BYTES (4 << 20)

/* The tag of an event on the completion queue; `done` handles the event. */
struct mr_rpc_tag {
    void (*done)(struct mr_rpc_tag *tag, bool ok);
};

/* Batches of a call on the completion queue. At any time, at most one batch of each kind is there
 * for a call. */
enum mr_rpc_batch {
    MR_RPC_BATCH_OPEN,    /* client: receives the peer's initial metadata */
    MR_RPC_BATCH_RECEIVE, /* a message */
    MR_RPC_BATCH_SEND,
    MR_RPC_BATCH_CLOSE, /* server: RECV_CLOSE; client: RECV_STATUS */
    MR_RPC_BATCHES,
};

struct mr_rpc_slot {
    struct mr_rpc_call *call; /* NULL: the slot is free */
    uint32_t generation;
    uint32_t next_free;
};

struct mr_rpc_loop {
    grpc_completion_queue *cq;
    grpc_channel *wake_channel; /* a channel without a connection, on which wake_call is made */
    grpc_call *wake_call;       /* an empty batch on wake_call puts wake_tag on the queue */
    struct mr_rpc_tag wake_tag;
    _Atomic bool wake_under_way;
    _Atomic uintptr_t runner; /* number of the thread inside mr_rpc_loop_run; 0: none */
    bool woken;
    bool is_eager;        /* if its last waits were short, the loop polls before it sleeps */
    uint32_t short_waits; /* short waits in a row */
    /* The loop does not poll before this time, because another thread wanted this processor. */
    mr_time crowded_until;
    /* Few events came since the last sleep, so low latency matters more than throughput. */
    bool turn_is_young;
    struct mr_list dirty; /* calls that have something to send */
    struct mr_list owed;  /* calls whose next message is requested later in the turn */
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

struct mr_rpc_queue { /* a ring of messages to be sent */
    grpc_byte_buffer **items;
    uint32_t head, count, room;
    size_t bytes;
};

struct mr_rpc_outgoing { /* metadata to send; owns the slices of names and values */
    grpc_metadata *items;
    size_t count;
};

struct mr_rpc_call {
    struct mr_rpc_loop *loop;
    grpc_call *grpc;
    mr_rpc_call_id id;
    struct mr_rpc_server *server; /* of a server call; otherwise NULL */
    /* Of a client call; otherwise NULL. The call holds a reference to the channel. */
    struct mr_rpc_channel *channel;
    const struct mr_rpc_method *method;
    const struct mr_rpc_handler *handler;
    void *context;
    void (*on_freed)(struct mr_rpc_call *call); /* lets the server count its calls */
    struct mr_list dirty_node;                  /* node on loop->dirty */
    struct mr_list owed_node;                   /* node on loop->owed */
    struct mr_list owner_node;                  /* node on the list of the server or the channel */

    struct mr_rpc_state state;
    struct mr_rpc_tag tags[MR_RPC_BATCHES];
    /* Batches on the completion queue: bits 1 << MR_RPC_BATCH_…. */
    uint32_t batches;

    grpc_slice path;
    mr_time deadline;
    char *peer;
    grpc_metadata_array metadata_in, trailing_in;
    struct mr_rpc_outgoing initial_out, trailing_out;

    grpc_byte_buffer *received;
    bool auto_read;   /* after each message the next one is requested */
    bool read_wanted; /* mr_rpc_call_read has requested one message */
    bool defers_read; /* the next read may wait until the answer has been sent */
    /* true: the next read has already waited for one sleep of the loop, so it waits no longer */
    bool has_waited;
    /* A call of health or reflection, which the server's calls_count leaves out. */
    bool ours;
    bool one_reply; /* client: the reply comes together with the status */

    struct mr_rpc_queue queue;
    bool was_full; /* the queue was full: on_writable is called when there is room */
    /* The initial metadata was sent. It goes with the first batch, even if this is also the last
     * batch. */
    bool initial_sent;
    uint32_t initial_flags;
    int cancelled; /* server: gRPC writes the result of RECV_CLOSE here */

    grpc_status_code status; /* of a server call: to be sent; of a client call: received */
    grpc_slice status_text;
};

static inline bool mr_rpc_call_has_batch(const struct mr_rpc_call *call, enum mr_rpc_batch batch)
{
    return call->batches >> batch & 1;
}

/* Defined in loop.c. */
mr_time mr_rpc_time(gpr_timespec t);

/* Functions of call.c. */
struct mr_rpc_call *mr_rpc_call_new(struct mr_rpc_loop *loop, grpc_call *grpc);
void mr_rpc_call_mark(
    struct mr_rpc_call *call); /* puts the call on loop->dirty, because it has something to send */
void mr_rpc_call_flush(struct mr_rpc_call *call);
void mr_rpc_call_pump(
    struct mr_rpc_call *call); /* asks gRPC for the next message, if the state allows it */
void mr_rpc_call_batch(
    struct mr_rpc_call *call, const grpc_op *ops, size_t ops_count, enum mr_rpc_batch batch);
/* To be called when gRPC has finished `batch` and delivers `tag`. Removes the batch from
 * call->batches. Returns the call to which the tag belongs. */
struct mr_rpc_call *mr_rpc_call_returned(struct mr_rpc_tag *tag, enum mr_rpc_batch batch);
void mr_rpc_call_drop_queue(struct mr_rpc_call *call);
/* Passes call->received to on_message. Afterwards the caller moves the call's state on from
 * DELIVERING. */
void mr_rpc_call_deliver(struct mr_rpc_call *call);
/* Calls on_done and frees the call if none of its batches is left on the queue. */
void mr_rpc_call_end_if_over(struct mr_rpc_call *call);
int mr_rpc_outgoing_add(struct mr_rpc_outgoing *o, const char *name, struct mr_str value);

/* Functions of message.c. */
grpc_byte_buffer *mr_rpc_bytes_of(const struct mr_rpc_part *parts, size_t parts_count);
void mr_rpc_message_reset(struct mr_rpc_message *m);

/* In tls.c: returns the TLS settings for an address: `own`, or those of the process. NULL: no
 * TLS. */
struct mr_rpc_tls *mr_rpc_tls_for(struct mr_rpc_tls *own, const char *address);
grpc_server_credentials *mr_rpc_tls_server_credentials(struct mr_rpc_tls *tls);
grpc_channel_credentials *mr_rpc_tls_channel_credentials(struct mr_rpc_tls *tls);

/* In tls_error.c: called when a connection to a TCP port failed with gRPC's text `why`. True: TLS
 * is the reason, or perhaps the reason, and `out` receives the sentence for the user. False: the
 * reason is another one, and `out` is unchanged. */
bool mr_rpc_tls_words(
    const char *address, const struct mr_rpc_tls *tls, struct mr_str why, struct mr_error *out);
/* In tls_error.c: takes a line of gRPC's log. True: the line is about a failed handshake, and was
 * logged as tls.refused, at most once a second. False: the line is about something else, and was
 * not logged. */
bool mr_rpc_tls_notice(const char *text);

/* Functions of client.c. */
void mr_rpc_channel_put(struct mr_rpc_channel **channel);
