/* A listening UNIX socket. It accepts a connection, checks the peer's user (SO_PEERCRED), and hands
 * the connection on. It has a thread of its own, which sleeps in poll. */
#pragma once

#include "host/os/peer.h"

struct mr_unix_listener;

/* Binds `path`. The socket of a dead server is replaced; MR_EEXIST when a server answers there. The
 * socket has mode 0600 when only our own uid is allowed. */
int mr_unix_listener_open(const char *path, const struct mr_peer_rules *rules,
    struct mr_unix_listener **out, struct mr_error *e);

/* From now on calls on_accept(ctx, fd), on the listener's thread, for each connection of an allowed
 * peer. The descriptor is non-blocking; the callee owns it. */
void mr_unix_listener_start(
    struct mr_unix_listener *d, void (*on_accept)(void *ctx, int fd), void *ctx);
void mr_unix_listener_close(
    struct mr_unix_listener **d); /* removes the socket file if it is still ours */
