/* The server's struct, for the server's own files and its services (health, reflection). */
#pragma once

#include "rpc/core.h"
#include "rpc/server/descriptors.h"
#include "rpc/server/unix_listener.h"

#define MR_RPC_SERVICES_MAX 64
#define MR_RPC_UNIX_LISTENERS_MAX 4
#define MR_RPC_ACCEPTS 64 /* so many calls may arrive in one turn; the rest waits for the next */

struct mr_rpc_entry { /* one method, found by its path */
    char *path;
    const struct mr_rpc_method *method;
    void *context;
    bool ours; /* health and reflection */
};

struct mr_rpc_health {
    char *service;
    bool serving;
};

struct mr_rpc_accept;

struct mr_rpc_server {
    struct mr_rpc_loop *loop;
    grpc_server *grpc;
    grpc_server_credentials *credentials; /* plain: of UNIX sockets, and of TCP without TLS */
    struct mr_rpc_tls *tls;               /* the caller's; NULL: the process's, if there is one */
    bool has_tls;                         /* one of its ports has TLS */
    struct mr_peer_rules rules;
    struct mr_unix_listener *unix_listeners[MR_RPC_UNIX_LISTENERS_MAX];
    uint32_t unix_listeners_count;
    size_t message_bytes_max;
    mr_rpc_may_call auth;
    void *auth_ctx;
    struct mr_rpc_entry *entries;
    uint32_t entries_count;
    struct mr_rpc_health health[MR_RPC_SERVICES_MAX + 1]; /* [0] is "" */
    uint32_t health_count;
    struct mr_list watches; /* open health watches */
    struct mr_descriptors descriptors;
    struct mr_list calls;
    size_t calls_count; /* without health and reflection */
    struct mr_rpc_accept *accepts;
    uint32_t accepts_count; /* armed */
    bool started, draining, shut_down;
    struct mr_rpc_tag shutdown_tag;
};

/* address.c */
void mr_rpc_server_start_unix_listeners(struct mr_rpc_server *server);
void mr_rpc_server_close_unix_listeners(struct mr_rpc_server *server);

extern const struct mr_rpc_service mr_rpc_health_service;
extern const struct mr_rpc_service mr_rpc_reflection_service;
extern const struct mr_rpc_service mr_rpc_reflection_alpha_service;

void mr_rpc_health_changed(struct mr_rpc_server *server); /* sends it to the watches */
struct mr_str mr_rpc_own_descriptors(void);               /* of health and reflection, generated */
