/* The client side, event-driven: channels and calls on a loop. Programs without a loop use
 * util/sync.h. */
#pragma once

#include "host/stop.h"
#include "rpc/rpc.h"
#include "rpc/secret_file.h"

struct mr_rpc_channel;

struct mr_rpc_channel_options { /* zero: the default */
    size_t message_bytes_max;   /* MR_MESSAGE_BYTES_MAX */
    mr_duration keepalive;      /* 0: 10 s on TCP, none on UNIX sockets; MR_NEVER: none */
    mr_duration backoff_max;    /* between attempts to connect; 0: 2 s */
    const char *bearer;         /* sent with each call as `authorization: Bearer …`; copied */
    const struct mr_credential *credential; /* the same header, read when a call begins; lent */
    struct mr_rpc_tls *tls; /* for TCP; NULL: what mr_rpc_tls_use was given, or none. Lent */
};

/* "unix:/path" or "host:port". The first call connects; a broken connection is made again by
 * itself. */
struct mr_rpc_channel *mr_rpc_channel_open(
    struct mr_rpc_loop *loop, const char *address, const struct mr_rpc_channel_options *options);
/* Its calls are cancelled; each still gets its on_done. */
void mr_rpc_channel_close(struct mr_rpc_channel **channel);
const char *mr_rpc_channel_address(const struct mr_rpc_channel *channel);

struct mr_rpc_metadata {
    const char *name; /* lower case; "-bin" at the end for binary values */
    struct mr_str value;
};

struct mr_rpc_call_options { /* zero: the default */
    mr_duration timeout;     /* 0: none */
    bool wait_for_ready;     /* wait for a connection instead of failing UNAVAILABLE */
    bool manual_read;        /* auto read off */
    bool one_reply;          /* the method sends exactly one reply: saves a batch */
    const struct mr_rpc_metadata *metadata;
    size_t metadata_count;
    struct mr_stop stop; /* of blocking calls (util/sync.h): they are cancelled when it is set */
};

/* Opens a call. It never fails here: on_done reports what is wrong. `options` may be NULL. */
struct mr_rpc_call *mr_rpc_call_open(struct mr_rpc_channel *channel, const char *method,
    const struct mr_rpc_handler *handler, void *context, const struct mr_rpc_call_options *options);

int mr_rpc_call_half_close(struct mr_rpc_call *call); /* after what is queued */
void mr_rpc_call_cancel(struct mr_rpc_call *call);    /* also of a server call; on_done follows */

/* A unary call. `reply` is NULL unless status->code is 0; it is lent until the callback returns,
 * unless taken. */
typedef void (*mr_rpc_on_reply)(
    void *ctx, const struct mr_rpc_status *status, struct mr_rpc_message *reply);
mr_rpc_call_id mr_rpc_unary(struct mr_rpc_channel *channel, const char *method,
    struct mr_str request, const struct mr_rpc_call_options *options, mr_rpc_on_reply on_reply,
    void *ctx);
