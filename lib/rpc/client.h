/* The client side, event-driven: channels and calls on a loop. Programs without a loop use
 * util/sync.h. */
#pragma once

#include "host/stop.h"
#include "rpc/rpc.h"
#include "rpc/secret_file.h"

struct mr_rpc_channel;

struct mr_rpc_channel_options { /* all zeros: the defaults are used */
    size_t message_bytes_max;   /* 0: MR_MESSAGE_BYTES_MAX */
    /* Time between pings on a connection that has open calls and receives no data. 0: 10 s on TCP,
     * no pings on UNIX sockets. MR_NEVER: no pings. */
    mr_duration keepalive;
    /* The longest pause between two attempts to connect. 0: 2 s. */
    mr_duration backoff_max;
    /* Sent with each call as `authorization: Bearer …`; copied. NULL: no token. */
    const char *bearer;
    /* A secret that is sent in the `authorization` header if `bearer` is NULL. The secret is read
     * when a call begins. Borrowed; NULL: no secret. */
    const struct mr_credential *credential;
    /* TLS of a TCP connection. NULL: the process-wide TLS of mr_rpc_tls_use, or no TLS.
     * Borrowed. */
    struct mr_rpc_tls *tls;
};

/* Opens a channel to "unix:/path" or "host:port". The first call connects. A broken connection is
 * opened again without help of the caller. */
struct mr_rpc_channel *mr_rpc_channel_open(
    struct mr_rpc_loop *loop, const char *address, const struct mr_rpc_channel_options *options);
/* Closes the channel and cancels its calls; on_done is still called for each call. */
void mr_rpc_channel_close(struct mr_rpc_channel **channel);
const char *mr_rpc_channel_address(const struct mr_rpc_channel *channel);

struct mr_rpc_metadata {
    const char *name; /* in lower case; the name of a binary value ends with "-bin" */
    struct mr_str value;
};

struct mr_rpc_call_options { /* all zeros: the defaults are used */
    mr_duration timeout;     /* 0: no timeout */
    /* The call waits for a connection. Otherwise it fails with UNAVAILABLE if there is none. */
    bool wait_for_ready;
    bool manual_read; /* auto read is off when the call begins (mr_rpc_call_set_auto_read) */
    /* The method sends exactly one reply, which this process receives together with the status. */
    bool one_reply;
    const struct mr_rpc_metadata *metadata;
    size_t metadata_count;
    /* For blocking calls (util/sync.h): the call is cancelled when this condition is set. */
    struct mr_stop stop;
};

/* Opens a call, and never fails here: errors are reported by on_done. `options` may be NULL. */
struct mr_rpc_call *mr_rpc_call_open(struct mr_rpc_channel *channel, const char *method,
    const struct mr_rpc_handler *handler, void *context, const struct mr_rpc_call_options *options);

/* Ends the messages of this side: the half close follows the queued messages. MR_ESTATE: this side
 * has half-closed the call already. MR_ECANCELED: the call is over. */
int mr_rpc_call_half_close(struct mr_rpc_call *call);
/* Cancels a call of a client or of a server. on_done is called afterwards. */
void mr_rpc_call_cancel(struct mr_rpc_call *call);

/* Called at the end of a unary call. `reply` is NULL unless status->code is 0. `reply` is borrowed
 * until the callback returns, unless the callback takes it. */
typedef void (*mr_rpc_on_reply)(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply);
mr_rpc_call_id mr_rpc_unary(struct mr_rpc_channel *channel, const char *method,
    struct mr_str request, const struct mr_rpc_call_options *options, mr_rpc_on_reply on_reply,
    void *ctx);
