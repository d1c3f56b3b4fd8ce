/* The HTTP server: libmicrohttpd with epoll and a pool of threads that never block. */
#pragma once

#include "gateway/bridge/bridge.h"
#include "gateway/http/origin.h"
#include "host/os/peer.h"
#include "host/limit/allowance.h"

struct mr_http_options {
    const char *listen; /* "host:port" or "unix:/path" */
    /* Names that the header Host may have, in addition to localhost and `listen`. */
    const char *const *hosts;
    size_t hosts_count;
    struct mr_token_file *tokens; /* NULL: there are no tokens, and every client is an admin */
    struct mr_peer_rules peers;   /* the users who may connect to a UNIX socket */
    const char *dashboard;        /* a directory with files; NULL: a built-in page */
    /* True: the server uses the certificate that host/tls/server_certificate.h has opened. */
    bool is_https;
    uint32_t connections_max;
    /* Connections from one client address; 0: no limit. */
    uint32_t connections_each_max;
    uint32_t threads;
    /* A connection that moves no byte for this time is closed. */
    mr_duration idle;
    struct mr_allowance *allowance; /* bounds the memory of bodies that are being read */
    struct mr_bridge *bridge;
    struct mr_fd_deadlines *fd_deadlines;
    struct mr_stats *stats;
};

struct mr_http;

/* Listens and starts to answer. MR_EPERM: other machines can reach the address, and there are no
 * tokens. */
int mr_http_open(const struct mr_http_options *options, struct mr_http **out, struct mr_error *e);
void mr_http_quiesce(struct mr_http *h); /* refuses new connections */
/* To be called when every exchange has got its last reply (MR_REPLY_END in bridge/exchange.h). */
void mr_http_close(struct mr_http **h);
/* Returns the gauge that counts connections of which no request has been answered yet. */
const struct mr_gauge *mr_http_unanswered(const struct mr_http *h);
int mr_http_port(const struct mr_http *h); /* 0: the server listens on a UNIX socket */
