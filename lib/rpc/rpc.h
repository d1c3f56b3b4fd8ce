/* What server and client share: the status, messages and calls. This header shows no type of gRPC.
 * A call belongs to the thread of its loop. Every function here must run on that thread unless its
 * comment says otherwise. Callbacks are called by mr_rpc_loop_run, never by a function of this
 * header. A `struct mr_rpc_call *` is valid until its on_done has returned. Code that may run later
 * keeps the call's id, which is never used again, and looks the call up with mr_rpc_call_find. */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/time.h"

#include <stdbool.h>

/* A call with this many queued bytes is not writable. on_writable is called when less than half of
 * this number is queued. */
#define MR_RPC_QUEUE_BYTES_HIGH ((size_t)4 << 20)
/* The most bytes in the queue of a call. A send that would exceed this number is refused. */
#define MR_RPC_QUEUE_BYTES_MAX ((size_t)64 << 20)
#define MR_RPC_QUEUE_COUNT_HIGH 4096
#define MR_RPC_QUEUE_COUNT_MAX 65536
#define MR_RPC_METADATA_MAX 32 /* metadata entries that one call may send */

struct mr_rpc_loop;
struct mr_rpc_call;
struct mr_rpc_message;

typedef struct {
    uint64_t v;
} mr_rpc_call_id; /* 0: no call */

struct mr_rpc_status {
    int code;              /* google.rpc.Code: 0 is OK */
    struct mr_str message; /* the sentence for the user */
    struct mr_str details; /* a serialized google.rpc.Status, or empty */
};

/* The callbacks of a call. Any of them may be NULL. */
struct mr_rpc_handler {
    /* Server: a call came; its metadata, peer and deadline can be read. Client: the server's
     * initial metadata came. */
    void (*on_open)(struct mr_rpc_call *call);
    /* A message has come. It is borrowed until the callback returns, unless the callback takes
     * it. */
    void (*on_message)(struct mr_rpc_call *call, struct mr_rpc_message *m);
    /* Server: the client will send no more messages. Also called after the message of a unary
     * request, unless the call has been answered by then. Not called on a client. */
    void (*on_half_close)(struct mr_rpc_call *call);
    /* The send queue was full, and is now below half of its mark (MR_RPC_QUEUE_BYTES_HIGH,
     * MR_RPC_QUEUE_COUNT_HIGH). */
    void (*on_writable)(struct mr_rpc_call *call);
    /* Server: the client cancelled, its deadline passed or its connection broke before the server
     * finished the call. Nothing more can be sent. */
    void (*on_cancelled)(struct mr_rpc_call *call);
    /* The last callback, called exactly once; it should free the context. On a client, `status` is
     * the status of the call. On a server, it is OK if the call's status was sent, whatever its
     * code, and otherwise CANCELLED. */
    void (*on_done)(struct mr_rpc_call *call, const struct mr_rpc_status *status);
};

/* ---- any call ---------------------------------------------------------------------------- */

mr_rpc_call_id mr_rpc_call_id_of(const struct mr_rpc_call *call);
/* Returns the call with this id. NULL: the call's on_done has returned. */
struct mr_rpc_call *mr_rpc_call_find(struct mr_rpc_loop *loop, mr_rpc_call_id id);

void mr_rpc_call_set_context(struct mr_rpc_call *call, void *context);
void *mr_rpc_call_context(const struct mr_rpc_call *call);

/* Returns the path of the method, for example "/millrace.v1.Jobs/Get". */
struct mr_str mr_rpc_call_method(const struct mr_rpc_call *call);
/* returns MR_NEVER if the call has no deadline */
mr_time mr_rpc_call_deadline(const struct mr_rpc_call *call);
/* Returns the peer's address, "unix:…" or "ipv4:127.0.0.1:4711", borrowed until on_done. The
 * address is not authenticated. */
struct mr_str mr_rpc_call_peer(struct mr_rpc_call *call);
/* Finds a value of the peer's metadata. For a server call this is the metadata of the request. For
 * a client call it is the initial metadata and, in on_done, the trailing metadata. Names are in
 * lower case. True: `*value` is the first value with this name, lent until on_done returns. False:
 * the metadata has no such name. */
bool mr_rpc_call_metadata(const struct mr_rpc_call *call, const char *name, struct mr_str *value);

/* Sends a message. Queued messages leave together in the loop's next turn. MR_ETOOBIG: more than
 * MR_MESSAGE_BYTES_MAX. MR_ELIMIT: the queue is full, so this message was not queued. MR_ESTATE:
 * this side has finished or half-closed the call. MR_ECANCELED: the call is over. */
int mr_rpc_call_send(struct mr_rpc_call *call, struct mr_str bytes); /* copies */

/* A part of a message. A part with `release` is not copied: its bytes are borrowed until
 * release(ctx) is called. The call of `release` comes exactly once, on any thread, even if the send
 * is refused. */
struct mr_rpc_part {
    struct mr_str bytes;
    void (*release)(void *ctx);
    void *ctx;
};
int mr_rpc_call_send_parts(
    struct mr_rpc_call *call, const struct mr_rpc_part *parts, size_t parts_count);

/* True: fewer bytes are queued than MR_RPC_QUEUE_BYTES_HIGH, and fewer messages than
 * MR_RPC_QUEUE_COUNT_HIGH. False: the call is over; or one of these limits is reached, and
 * on_writable will be called. */
bool mr_rpc_call_is_writable(const struct mr_rpc_call *call);
size_t mr_rpc_call_queued_bytes(const struct mr_rpc_call *call);
/* True: the call is writable and at most `bytes_max` bytes are queued. False: more is queued, or
 * the call is over. Unless the call is over, on_writable is called later. The caller then asks
 * again, because on_writable may come while more than `bytes_max` bytes are queued. */
bool mr_rpc_call_has_room(struct mr_rpc_call *call, size_t bytes_max);

/* Turns auto read on or off. With auto read (the default) messages arrive without a request.
 * Without auto read, one message arrives for each mr_rpc_call_read, so the receiver can slow the
 * sender down. Turning auto read on reads at once. */
void mr_rpc_call_set_auto_read(struct mr_rpc_call *call, bool on);
void mr_rpc_call_read(struct mr_rpc_call *call);
/* Defers the next read; to be called in on_message if the answer follows soon. The next message is
 * requested when the answer is sent or the loop wakes up, at most a millisecond later. Then gRPC's
 * flow-control frames travel with the answer. */
void mr_rpc_call_defer_read(struct mr_rpc_call *call);

/* ---- messages ---------------------------------------------------------------------------- */

size_t mr_rpc_message_bytes(const struct mr_rpc_message *m);
/* Returns the message as one run of bytes. A message that came in pieces is joined on first use. */
struct mr_str mr_rpc_message_str(struct mr_rpc_message *m);
/* Sets `*parts` to the pieces in which the message came, and returns their number. `*parts` is
 * valid as long as the message. */
size_t mr_rpc_message_parts(struct mr_rpc_message *m, const struct mr_str **parts);
/* To be called in on_message: takes the message out of `m`. The returned message outlives the
 * callback, and may be freed on any thread. */
struct mr_rpc_message *mr_rpc_message_take(struct mr_rpc_message *m);
void mr_rpc_message_free(struct mr_rpc_message **m);

/* Bytes of all messages that this process has sent and received, on all loops, without the overhead
 * of HTTP/2 and TLS. Any thread may call this function. */
struct mr_rpc_traffic {
    uint64_t sent, received;
};
struct mr_rpc_traffic mr_rpc_traffic(void);
