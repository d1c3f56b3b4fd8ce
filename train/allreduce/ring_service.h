/* The gRPC service Collective: passes blocks of the ring to the inbox of their rank
 * (ring_internal.h). On the network thread. */
#pragma once

#include "rpc/server.h"

extern const struct mr_rpc_service mr_ring_service; /* its context is not used */

/* On the network thread, when it was woken: ends calls for ranks that have closed. */
void mr_ring_service_turn(void);
/* What wakes that thread; NULL: nothing. Returns when no wake is under way. */
void mr_ring_set_waker(void (*wake)(void *ctx), void *ctx);
