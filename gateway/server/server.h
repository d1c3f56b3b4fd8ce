/* The HTTP server: libmicrohttpd with epoll and a pool of threads, none of which ever blocks. */
#pragma once

#include "gateway/bridge/bridge.h"
#include "gateway/http/origin.h"
#include "host/os/peer.h"
#include "host/limit/allowance.h"

struct mr_http_options {
    const char *listen;       /* "host:port" or "unix:/path" */
    const char *const *hosts; /* allowed in the header Host, beside localhost and `listen` */
    size_t hosts_count;
    struct mr_token_file *tokens; /* NULL: every client is an admin */
    struct mr_peer_rules peers;   /* who may connect to a UNIX socket */
    const char *dashboard;        /* a directory; NULL: a built-in page */
    bool is_https; /* with the certificate that host/tls/server_certificate.h has opened */
    uint32_t connections_max;
    uint32_t connections_each_max; /* from one address; 0: no limit */
    uint32_t threads;
    mr_duration idle;               /* a connection that moves no byte for so long is closed */
    struct mr_allowance *allowance; /* memory for bodies that are being read */
    struct mr_bridge *bridge;
    struct mr_fd_deadlines *fd_deadlines;
    struct mr_stats *stats;
};

struct mr_http;

/* Listens and starts to answer. MR_EPERM: other machines can reach the address, and there are no
 * tokens. */
int mr_http_open(const struct mr_http_options *options, struct mr_http **out, struct mr_error *e);
void mr_http_quiesce(struct mr_http *h); /* no new connections */
void mr_http_close(struct mr_http **h);  /* when every exchange has its END */
/* Connections of which no request has been answered yet. */
const struct mr_gauge *mr_http_unanswered(const struct mr_http *h);
int mr_http_port(const struct mr_http *h); /* 0: a UNIX socket */
