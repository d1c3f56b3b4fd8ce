/* The server's struct, for the server's own files and its services (health, reflection). */
#pragma once

#include "rpc/core.h"
#include "rpc/server/descriptors.h"
#include "rpc/server/unix_listener.h"

#define MR_RPC_SERVICES_MAX 64
#define MR_RPC_UNIX_LISTENERS_MAX 4
/* Number of grpc_server_request_call that wait for a call. While all of them have a call that the
 * loop has not handled yet, new calls wait inside gRPC. */
#define MR_RPC_ACCEPTS 64

struct mr_rpc_entry { /* a method in the table of paths */
    char *path;
    const struct mr_rpc_method *method;
    void *context;
    bool ours; /* a method of health or reflection */
};

struct mr_rpc_health {
    char *service;
    bool serving;
};

struct mr_rpc_accept;

struct mr_rpc_server {
    struct mr_rpc_loop *loop;
    grpc_server *grpc;
    /* Insecure credentials, for UNIX sockets and for TCP without TLS. */
    grpc_server_credentials *credentials;
    /* TLS settings from the server's options. NULL: the process-wide TLS, if there is one. */
    struct mr_rpc_tls *tls;
    bool has_tls; /* one of the server's ports has TLS */
    struct mr_peer_rules rules;
    struct mr_unix_listener *unix_listeners[MR_RPC_UNIX_LISTENERS_MAX];
    uint32_t unix_listeners_count;
    size_t message_bytes_max;
    mr_rpc_may_call auth;
    void *auth_ctx;
    struct mr_rpc_entry *entries;
    uint32_t entries_count;
    struct mr_rpc_health health[MR_RPC_SERVICES_MAX + 1]; /* health[0] is the server as a whole */
    uint32_t health_count;
    struct mr_list watches; /* open calls of Health.Watch */
    struct mr_descriptors descriptors;
    struct mr_list calls;
    size_t calls_count; /* open calls, without those of health and reflection */
    struct mr_rpc_accept *accepts;
    uint32_t accepts_count; /* number of grpc_server_request_call that wait for a call */
    bool started, draining, shut_down;
    struct mr_rpc_tag shutdown_tag;
};

/* Functions of address.c. */
void mr_rpc_server_start_unix_listeners(struct mr_rpc_server *server);
void mr_rpc_server_close_unix_listeners(struct mr_rpc_server *server);

extern const struct mr_rpc_service mr_rpc_health_service;
extern const struct mr_rpc_service mr_rpc_reflection_service;
extern const struct mr_rpc_service mr_rpc_reflection_alpha_service;

void mr_rpc_health_changed(struct mr_rpc_server *server); /* sends the new state to the watches */
/* Returns the generated descriptors of health and reflection. */
struct mr_str mr_rpc_own_descriptors(void);
