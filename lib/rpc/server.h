/* The server side. A service is a table of methods; a call of any other method is answered with
 * UNIMPLEMENTED. Every server has the services grpc.health.v1 and grpc.reflection.v1 and v1alpha.
 *
 *     server = mr_rpc_server_new(loop, &options);
 *     mr_rpc_server_add_service(server, &jobs_service, ctx);
 *     err = mr_rpc_server_listen(server, "unix:/run/x.sock", NULL, &e);
 *     mr_rpc_server_start(server);
 *     … mr_rpc_loop_run …
 *     mr_rpc_server_drain(server);                    end your own streams
 *     mr_rpc_server_close(&server, 5 * MR_SECOND);    waits, ends other calls, frees */
#pragma once

#include "host/os/peer.h"
#include "rpc/rpc.h"

struct mr_rpc_server;

struct mr_rpc_method {
    const char *name; /* for example "Get" */
    bool client_streaming;
    bool server_streaming;
    bool manual_read;   /* auto read is off when a call begins (mr_rpc_call_set_auto_read) */
    bool without_token; /* any caller may call the method; the auth callback is not called */
    const struct mr_rpc_handler *handler;
};

struct mr_rpc_service {
    const char *name; /* for example "millrace.v1.Jobs" */
    const struct mr_rpc_method *methods;
    size_t methods_count;
};

/* Decides whether a call may be made, from the call's method, metadata and peer. Returns MR_OK, or
 * an error such as MR_EAUTH or MR_EPERM with the sentence for the caller. */
typedef int (*mr_rpc_may_call)(void *ctx, struct mr_rpc_call *call, struct mr_error *e);

struct mr_rpc_server_options { /* all zeros: the defaults are used */
    size_t message_bytes_max;  /* 0: MR_MESSAGE_BYTES_MAX */
    /* The time between pings on an idle TCP connection. 0: 20 s. MR_NEVER: no pings. */
    mr_duration keepalive;
    /* The least time between two pings of a client. 0: 1 s. */
    mr_duration ping_min;
    /* The flow-control window has a fixed size. This suits small messages, because it saves the
     * pings that measure the link. */
    bool fixed_window;
    struct mr_peer_rules peers; /* which users may connect to UNIX sockets */
    /* Decides which calls may be made. NULL: every caller may call everything. Health checks are
     * never refused. */
    mr_rpc_may_call auth;
    void *auth_ctx;
    /* TLS of TCP ports. NULL: the process-wide TLS of mr_rpc_tls_use, or no TLS. Borrowed. */
    struct mr_rpc_tls *tls;
};

struct mr_rpc_server *mr_rpc_server_new(
    struct mr_rpc_loop *loop, const struct mr_rpc_server_options *options);

/* Adds a service; to be called before the start. The table is borrowed. `context` is the context of
 * each call until mr_rpc_call_set_context changes it. */
void mr_rpc_server_add_service(
    struct mr_rpc_server *server, const struct mr_rpc_service *service, void *context);

/* Listens on an address: "unix:/path", "host:port" or "ipv4:1.2.3.4:0". To be called before the
 * start, once for each address. The socket file of a dead server is replaced. MR_EEXIST: another
 * server answers on the socket, or the path is a file of another kind. MR_EINVAL or MR_EIO: the
 * server cannot listen on the address. MR_ELIMIT: it listens on too many UNIX sockets. `*port` (may
 * be NULL) receives the port, or 0 for a UNIX socket. */
int mr_rpc_server_listen(
    struct mr_rpc_server *server, const char *address, int *port, struct mr_error *e);

/* Adds a serialized FileDescriptorSet for reflection. The bytes are borrowed. MR_EFORMAT: the bytes
 * are malformed. MR_ELIMIT: there are too many files or symbols. */
int mr_rpc_server_add_descriptors(
    struct mr_rpc_server *server, struct mr_str descriptor_set, struct mr_error *e);

void mr_rpc_server_start(struct mr_rpc_server *server);

/* Sets the health of one service; "" is the server as a whole. All services begin as serving. */
void mr_rpc_server_set_serving(struct mr_rpc_server *server, const char *service, bool serving);

/* Answers new calls, except those of health and reflection, with UNAVAILABLE from now on, and sets
 * the health to NOT_SERVING. Open calls go on; only those of health and reflection are ended. */
void mr_rpc_server_drain(struct mr_rpc_server *server);
/* True: the server is drained, and no call is left. */
bool mr_rpc_server_is_drained(const struct mr_rpc_server *server);
size_t mr_rpc_server_calls(
    const struct mr_rpc_server *server); /* open calls, without health and reflection */

/* Drains the server, runs the loop until no call is left or `grace` has passed, ends the remaining
 * calls with UNAVAILABLE and destroys the server. Must not be called from a callback. */
void mr_rpc_server_close(struct mr_rpc_server **server, mr_duration grace);

/* ---- server calls ------------------------------------------------------------------------- */

struct mr_rpc_server *mr_rpc_call_server(const struct mr_rpc_call *call);

/* Add metadata to the reply: initial metadata before the first send, trailing metadata before the
 * finish. Names of binary values end in "-bin". The value is copied. MR_ESTATE: the metadata has
 * been sent already. MR_ELIMIT: more than MR_RPC_METADATA_MAX entries. MR_EINVAL: a malformed name
 * or value. MR_ECANCELED: the call is over. */
int mr_rpc_call_add_initial(struct mr_rpc_call *call, const char *name, struct mr_str value);
int mr_rpc_call_add_trailing(struct mr_rpc_call *call, const char *name, struct mr_str value);

/* End the call after the queued messages. The details of the status are sent as
 * grpc-status-details-bin. MR_ESTATE: the call has been finished already. MR_ECANCELED: the call is
 * over. */
int mr_rpc_call_finish(struct mr_rpc_call *call, const struct mr_rpc_status *status);
int mr_rpc_call_finish_ok(struct mr_rpc_call *call);
/* Sends `bytes`, and then finishes the call with OK. MR_ETOOBIG: the call is finished with this
 * error instead. Any other error is one of mr_rpc_call_send, and the call is not finished. */
int mr_rpc_call_reply(struct mr_rpc_call *call, struct mr_str bytes);
/* Finishes the call with the code and the sentence of `e`. Where several MR_E… codes have one gRPC
 * code, the MR_E… code is added to the details, from which mr_rpc_status_error reads it. */
int mr_rpc_call_fail(struct mr_rpc_call *call, const struct mr_error *e);
