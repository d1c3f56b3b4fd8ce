/* A listening UNIX socket. It accepts connections, checks the peer's user (SO_PEERCRED), and passes
 * the connections on. A thread of its own waits in poll. */
#pragma once

#include "host/os/peer.h"

struct mr_unix_listener;

/* Binds `path`. The socket file of a dead server is replaced. MR_EEXIST: a server answers on the
 * socket, or the path is a file of another kind. The socket file has mode 0600, or 0666 if `rules`
 * allow users other than root and the user of this process. */
int mr_unix_listener_open(const char *path, const struct mr_peer_rules *rules,
    struct mr_unix_listener **out, struct mr_error *e);

/* Starts to accept: calls on_accept(ctx, fd) for each connection of an allowed peer, on the
 * listener's thread. The callee owns the descriptor, which is non-blocking. */
void mr_unix_listener_start(
    struct mr_unix_listener *d, void (*on_accept)(void *ctx, int fd), void *ctx);
/* Closes the listener. Removes the socket file if it is still the file that this listener
 * made. */
void mr_unix_listener_close(struct mr_unix_listener **d);
