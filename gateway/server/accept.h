/* The thread that accepts connections. It waits while there is no room - no descriptor, as many
 * connections as are allowed -, says so once, and leaves what comes meanwhile in the kernel's
 * queue. It knows sockets, and nothing of HTTP but the answer to an address with too many
 * connections. */
#pragma once

#include "host/limit/quota.h"
#include "host/os/stats.h"

#include <sys/socket.h>

struct mr_accept_options {
    int listen_fd;
    bool is_lent; /* the socket outlives us: what waits in its queue is for the next process */
    bool is_tls;
    uint32_t connections_max;
    struct mr_quota *quota;       /* by address */
    struct mr_gauge *connections; /* open now: counted by the server that takes them */
    struct mr_stats *stats;
    /* Takes the descriptor, on our thread. */
    void (*take)(void *ctx, int fd, const struct sockaddr *address, socklen_t bytes);
    void *ctx;
};

struct mr_acceptor;

struct mr_acceptor *mr_acceptor_new(const struct mr_accept_options *options);
void mr_acceptor_free(struct mr_acceptor **a); /* stops it */

void mr_acceptor_start(struct mr_acceptor *a);
/* No more connections after the return; those in the queue have been taken unless it is lent. The
 * listening socket is closed. */
void mr_acceptor_stop(struct mr_acceptor *a);
/* Why nothing is accepted at the moment; NULL: all is well. Any thread. */
const char *mr_acceptor_trouble(const struct mr_acceptor *a);

/* What the quota knows a client by; n = 0: one of this machine, who is not counted. */
struct mr_str mr_accept_key(const struct sockaddr *address);
