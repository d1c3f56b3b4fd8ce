/* The thread that accepts connections. While no descriptor is left, or as many connections are open
 * as are allowed, the thread pauses and logs that once; new connections wait in the kernel's queue.
 * Of HTTP it knows only the answer 429, for an address with too many connections. */
#pragma once

#include "host/limit/quota.h"
#include "host/os/stats.h"

#include <sys/socket.h>

struct mr_accept_options {
    int listen_fd;
    /* True: the socket outlives this process, and the next process accepts what is queued. */
    bool is_inherited;
    bool is_tls;
    uint32_t connections_max;
    struct mr_quota *quota;       /* connections by client address */
    struct mr_gauge *connections; /* number of open connections, which the server counts */
    struct mr_stats *stats;
    /* Receives the descriptor of a connection, on the accept thread. */
    void (*take)(void *ctx, int fd, const struct sockaddr *address, socklen_t bytes);
    void *ctx;
};

struct mr_acceptor;

struct mr_acceptor *mr_acceptor_new(const struct mr_accept_options *options);
void mr_acceptor_free(struct mr_acceptor **a); /* stops the thread first */

void mr_acceptor_start(struct mr_acceptor *a);
/* Stops the thread and closes the listening socket. Connections in the kernel's queue are accepted
 * first, unless the socket is inherited. */
void mr_acceptor_stop(struct mr_acceptor *a);
/* Returns why no connection is accepted at present. NULL: connections are accepted. Any
 * thread may call this function. */
const char *mr_acceptor_pause_reason(const struct mr_acceptor *a);

/* Returns the quota's key for a client's address. n = 0: a client on this machine, which has no
 * quota. */
struct mr_str mr_accept_key(const struct sockaddr *address);
