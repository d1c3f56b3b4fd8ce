/* The server side. A service is a table of methods; a call of any other method is answered
 * UNIMPLEMENTED. Every server has grpc.health.v1 and grpc.reflection.v1 and v1alpha.
 *
 *     server = mr_rpc_server_new(loop, &options);
 *     mr_rpc_server_add_service(server, &jobs_service, ctx);
 *     err = mr_rpc_server_listen(server, "unix:/run/x.sock", NULL, &e);
 *     mr_rpc_server_start(server);
 *     … mr_rpc_loop_run …
 *     mr_rpc_server_drain(server);                    tell your own streams to end
 *     mr_rpc_server_close(&server, 5 * MR_SECOND);    waits, ends the rest, destroys */
#pragma once

#include "host/os/peer.h"
#include "rpc/rpc.h"

struct mr_rpc_server;

struct mr_rpc_method {
    const char *name; /* "Get" */
    bool client_streaming;
    bool server_streaming;
    bool manual_read;   /* the call starts with auto read off */
    bool without_token; /* anyone may call it: the auth callback is not asked */
    const struct mr_rpc_handler *handler;
};

struct mr_rpc_service {
    const char *name; /* "millrace.v1.Jobs" */
    const struct mr_rpc_method *methods;
    size_t methods_count;
};

/* May this call be made? The callback reads the call's method, metadata and peer. MR_OK, or
 * MR_EAUTH or MR_EPERM with the sentence for the caller. */
typedef int (*mr_rpc_may_call)(void *ctx, struct mr_rpc_call *call, struct mr_error *e);

struct mr_rpc_server_options {  /* zero: the default */
    size_t message_bytes_max;   /* MR_MESSAGE_BYTES_MAX */
    mr_duration keepalive;      /* ping idle TCP connections this often; 0: 20 s; MR_NEVER: never */
    mr_duration ping_min;       /* clients may ping this often; 0: 1 s */
    bool fixed_window;          /* for messages, not bulk: saves the pings that measure a link */
    struct mr_peer_rules peers; /* which users may connect to UNIX sockets */
    mr_rpc_may_call auth;       /* NULL: everyone may call; health checks always may */
    void *auth_ctx;
    struct mr_rpc_tls *tls; /* for TCP; NULL: what mr_rpc_tls_use was given, or none. Lent */
};

struct mr_rpc_server *mr_rpc_server_new(
    struct mr_rpc_loop *loop, const struct mr_rpc_server_options *options);

/* Before start. The table is kept, not copied. `context` is the context of each call at first. */
void mr_rpc_server_add_service(
    struct mr_rpc_server *server, const struct mr_rpc_service *service, void *context);

/* Before start, once for each address: "unix:/path", "host:port" or "ipv4:1.2.3.4:0". The socket
 * file of a dead server is replaced; the socket of a living one is MR_EEXIST. `*port` (may be NULL)
 * is the bound port. */
int mr_rpc_server_listen(
    struct mr_rpc_server *server, const char *address, int *port, struct mr_error *e);

/* Adds a serialized FileDescriptorSet to what reflection answers. The bytes are kept, not copied.
 * MR_EFORMAT. */
int mr_rpc_server_add_descriptors(
    struct mr_rpc_server *server, struct mr_str descriptor_set, struct mr_error *e);

void mr_rpc_server_start(struct mr_rpc_server *server);

/* Sets the health of one service; "" is the server as a whole. All services begin as serving. */
void mr_rpc_server_set_serving(struct mr_rpc_server *server, const char *service, bool serving);

/* From now on new calls are answered UNAVAILABLE and health is NOT_SERVING. Open calls go on. */
void mr_rpc_server_drain(struct mr_rpc_server *server);
bool mr_rpc_server_is_drained(const struct mr_rpc_server *server); /* and no call is left */
size_t mr_rpc_server_calls(
    const struct mr_rpc_server *server); /* open now; not health or reflection */
void mr_rpc_server_cancel_all(struct mr_rpc_server *server);

/* Drains the server, runs the loop until no call is left or `grace` has passed, ends the rest with
 * UNAVAILABLE and destroys the server. Not from a callback. */
void mr_rpc_server_close(struct mr_rpc_server **server, mr_duration grace);

/* ---- server calls ------------------------------------------------------------------------- */

struct mr_rpc_server *mr_rpc_call_server(const struct mr_rpc_call *call);

/* Metadata of the reply: initial before the first send, trailing before finish. Names of binary
 * values end in "-bin". The value is copied. MR_ESTATE: too late; MR_ELIMIT: more than
 * MR_RPC_METADATA_MAX; MR_EINVAL: a bad name or value. */
int mr_rpc_call_add_initial(struct mr_rpc_call *call, const char *name, struct mr_str value);
int mr_rpc_call_add_trailing(struct mr_rpc_call *call, const char *name, struct mr_str value);

/* Ends the call after the queued messages. Details travel as grpc-status-details-bin. */
int mr_rpc_call_finish(struct mr_rpc_call *call, const struct mr_rpc_status *status);
int mr_rpc_call_finish_ok(struct mr_rpc_call *call);
int mr_rpc_call_reply(struct mr_rpc_call *call, struct mr_str bytes); /* send, then OK */
/* Finishes with the code and sentence of `e`. A code that shares its gRPC code with another code
 * travels in the details, where mr_rpc_status_error reads it. */
int mr_rpc_call_fail(struct mr_rpc_call *call, const struct mr_error *e);
