/* The door of a UNIX socket: accepts, looks at who is there (SO_PEERCRED), hands the connection on.
 * It has a thread of its own, which sleeps in poll. */
#pragma once

#include "host/peer.h"

struct mr_doorman;

/* Binds `path`, replacing what a dead server left; MR_EEXIST if somebody answers there. With only
 * our own uid allowed the socket has mode 0600. */
int mr_doorman_open(const char *path, const struct mr_peer_rules *rules, struct mr_doorman **out,
    struct mr_error *e);

/* From now on calls welcome(ctx, fd), on the doorman's thread, for each peer that may come in; the
 * descriptor is non-blocking and the callee's. */
void mr_doorman_start(struct mr_doorman *d, void (*welcome)(void *ctx, int fd), void *ctx);
void mr_doorman_close(struct mr_doorman **d); /* removes the socket file if it is still ours */
