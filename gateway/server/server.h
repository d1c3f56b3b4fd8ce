/* The HTTP server: libmicrohttpd with epoll and a pool of threads, none of which ever waits. */
#pragma once

#include "gateway/bridge/bridge.h"
#include "gateway/http/origin.h"
#include "host/os/peer.h"
#include "host/limit/allowance.h"

struct mr_http_options {
    const char *listen;       /* "host:port" or "unix:/path" */
    const char *const *hosts; /* names that a Host header may have, beside the usual */
    size_t hosts_count;
    struct mr_token_file *tokens; /* NULL: everyone is an admin */
    struct mr_peer_rules peers;   /* who may connect to a UNIX socket */
    const char *dashboard;        /* a directory; NULL: a small page */
    bool is_https;                /* with host/tls/server_certificate.h, which is open */
    uint32_t connections_max;
    uint32_t connections_each_max; /* of one address; 0: no limit */
    uint32_t threads;
    mr_duration idle;               /* a connection without a byte for this long is closed */
    struct mr_allowance *allowance; /* of bodies that are being read */
    struct mr_bridge *bridge;
    struct mr_fd_deadlines *fd_deadlines;
    struct mr_stats *stats;
};

struct mr_http;

/* Listens and answers at once. MR_EPERM for an address that others can reach without tokens. */
int mr_http_open(const struct mr_http_options *options, struct mr_http **out, struct mr_error *e);
void mr_http_quiesce(struct mr_http *h);                       /* no new connections */
void mr_http_close(struct mr_http **h);                        /* no exchange is without its END */
const struct mr_gauge *mr_http_fresh(const struct mr_http *h); /* connections without an answer */
int mr_http_port(const struct mr_http *h);                     /* bound; 0: a UNIX socket */
