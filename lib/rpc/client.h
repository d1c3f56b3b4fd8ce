/* The client side, event-driven: channels and calls on a loop. Programs without a loop use
 * util/sync.h. */
#pragma once

#include "host/stop.h"
#include "rpc/rpc.h"
#include "rpc/secret_file.h"

struct mr_rpc_channel;

struct mr_rpc_channel_options { /* all zeros: the defaults */
    size_t message_bytes_max;   /* 0: MR_MESSAGE_BYTES_MAX */
    mr_duration keepalive;      /* 0: 10 s on TCP, none on UNIX sockets; MR_NEVER: none */
    mr_duration backoff_max;    /* longest pause between attempts to connect; 0: 2 s */
    const char *bearer;         /* sent with each call as `authorization: Bearer …`; copied */
    /* Also an `authorization` header, read when a call begins; borrowed. */
    const struct mr_credential *credential;
    /* For TCP; NULL: the process-wide TLS of mr_rpc_tls_use, or none. Borrowed. */
    struct mr_rpc_tls *tls;
};

/* Opens a channel to "unix:/path" or "host:port". The first call connects. A broken connection is
 * opened again without the caller. */
struct mr_rpc_channel *mr_rpc_channel_open(
    struct mr_rpc_loop *loop, const char *address, const struct mr_rpc_channel_options *options);
/* Cancels the calls of the channel; on_done is still called for each. */
void mr_rpc_channel_close(struct mr_rpc_channel **channel);
const char *mr_rpc_channel_address(const struct mr_rpc_channel *channel);

struct mr_rpc_metadata {
    const char *name; /* lower case; "-bin" at the end for binary values */
    struct mr_str value;
};

struct mr_rpc_call_options { /* all zeros: the defaults */
    mr_duration timeout;     /* 0: no timeout */
    bool wait_for_ready;     /* wait for a connection instead of failing with UNAVAILABLE */
    bool manual_read;        /* auto read is off at first (mr_rpc_call_set_auto_read) */
    /* The method sends exactly one reply, which then comes with the status. */
    bool one_reply;
    const struct mr_rpc_metadata *metadata;
    size_t metadata_count;
    struct mr_stop stop; /* for blocking calls (util/sync.h): cancels the call when it is set */
};

/* Opens a call. It never fails here: errors are reported by on_done. `options` may be NULL. */
struct mr_rpc_call *mr_rpc_call_open(struct mr_rpc_channel *channel, const char *method,
    const struct mr_rpc_handler *handler, void *context, const struct mr_rpc_call_options *options);

/* The half close follows the queued messages. */
int mr_rpc_call_half_close(struct mr_rpc_call *call);
void mr_rpc_call_cancel(struct mr_rpc_call *call); /* also for a server call; on_done follows */

/* The end of a unary call. `reply` is NULL unless status->code is 0. It is borrowed until the
 * callback returns, unless the callback takes it. */
typedef void (*mr_rpc_on_reply)(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply);
mr_rpc_call_id mr_rpc_unary(struct mr_rpc_channel *channel, const char *method,
    struct mr_str request, const struct mr_rpc_call_options *options, mr_rpc_on_reply on_reply,
    void *ctx);
