/* The server side. Services are tables of methods; everything else that arrives is answered
 * UNIMPLEMENTED. grpc.health.v1 and grpc.reflection.v1/v1alpha are always there.
 *
 *     server = mr_rpc_server_new(loop, &options);
 *     mr_rpc_server_add_service(server, &jobs_service, ctx);
 *     err = mr_rpc_server_listen(server, "unix:/run/x.sock", NULL, &e);
 *     mr_rpc_server_start(server);
 *     … mr_rpc_loop_run …
 *     mr_rpc_server_drain(server);                    tell your own streams to end
 *     mr_rpc_server_close(&server, 5 * MR_SECOND);    waits, ends the rest, destroys */
#pragma once

#include "host/peer.h"
#include "rpc/rpc.h"

struct mr_rpc_server;

struct mr_rpc_method {
    const char *name; /* "Get" */
    bool client_streaming;
    bool server_streaming;
    bool manual_read;   /* the call starts with auto read off */
    bool without_token; /* the auth check is not asked */
    const struct mr_rpc_handler *handler;
};

struct mr_rpc_service {
    const char *name; /* "millrace.v1.Jobs" */
    const struct mr_rpc_method *methods;
    size_t methods_count;
};

/* May this call be made? Sees the method, the metadata and the peer. MR_OK, or MR_EAUTH/MR_EPERM
 * with the sentence for the caller. */
typedef int (*mr_rpc_auth)(void *ctx, struct mr_rpc_call *call, struct mr_error *e);

struct mr_rpc_server_options { /* zero: the default */
    size_t message_bytes_max;  /* MR_MESSAGE_BYTES_MAX */
    mr_duration keepalive;     /* ping idle TCP connections this often; 0: 20 s; MR_NEVER: never */
    mr_duration ping_min;      /* clients may ping this often; 0: 1 s */
    bool fixed_window; /* for messages, not bulk: links are not measured, which costs a ping each */
    struct mr_peer_rules peers; /* who may connect to UNIX sockets */
    mr_rpc_auth auth;           /* NULL: everyone may; health checks always may */
    void *auth_ctx;
    struct mr_rpc_tls *tls; /* for TCP; NULL: what mr_rpc_tls_use was given, or none. Lent */
};

struct mr_rpc_server *mr_rpc_server_new(
    struct mr_rpc_loop *loop, const struct mr_rpc_server_options *options);

/* Before start. The table is kept, not copied. `context` is the first context of its calls. */
void mr_rpc_server_add_service(
    struct mr_rpc_server *server, const struct mr_rpc_service *service, void *context);

/* Before start; several times if wanted. "unix:/path" (a socket file left by a dead server is
 * replaced; one that answers is MR_EEXIST), "host:port", "ipv4:1.2.3.4:0". `*port` (may be NULL)
 * is the bound one. */
int mr_rpc_server_listen(
    struct mr_rpc_server *server, const char *address, int *port, struct mr_error *e);

/* What reflection tells: a serialized FileDescriptorSet, kept, not copied. MR_EFORMAT. */
int mr_rpc_server_add_descriptors(
    struct mr_rpc_server *server, struct mr_str descriptor_set, struct mr_error *e);

void mr_rpc_server_start(struct mr_rpc_server *server);

/* Health of a service of the table; "" is the server as a whole. All begin as serving. */
void mr_rpc_server_set_serving(struct mr_rpc_server *server, const char *service, bool serving);

/* New calls are answered UNAVAILABLE, health says NOT_SERVING; calls that are open go on. */
void mr_rpc_server_drain(struct mr_rpc_server *server);
bool mr_rpc_server_is_drained(const struct mr_rpc_server *server); /* and no call is left */
size_t mr_rpc_server_calls(const struct mr_rpc_server *server);    /* open now, ours not counted */
void mr_rpc_server_cancel_all(struct mr_rpc_server *server);

/* Drains, runs the loop until no call is left or `grace` has passed, ends the rest with
 * UNAVAILABLE, destroys. Not from a callback. */
void mr_rpc_server_close(struct mr_rpc_server **server, mr_duration grace);

/* ---- server calls ------------------------------------------------------------------------- */

struct mr_rpc_server *mr_rpc_call_server(const struct mr_rpc_call *call);

/* Metadata for the reply: initial before the first send, trailing before finish. Names of binary
 * values end in "-bin". Copied. MR_ESTATE too late, MR_ELIMIT too many, MR_EINVAL a bad name. */
int mr_rpc_call_add_initial(struct mr_rpc_call *call, const char *name, struct mr_str value);
int mr_rpc_call_add_trailing(struct mr_rpc_call *call, const char *name, struct mr_str value);

/* Ends the call after what is queued. Details travel as grpc-status-details-bin. */
int mr_rpc_call_finish(struct mr_rpc_call *call, const struct mr_rpc_status *status);
int mr_rpc_call_finish_ok(struct mr_rpc_call *call);
int mr_rpc_call_reply(struct mr_rpc_call *call, struct mr_str bytes); /* send, then OK */
/* Finishes with the code and sentence of `e`; a code that shares its gRPC code with another
 * travels in the details, and mr_rpc_status_error finds it again. */
int mr_rpc_call_fail(struct mr_rpc_call *call, const struct mr_error *e);
