/* The gRPC service Collective: passes blocks of the ring to the inbox of their rank
 * (ring_inbox.h). Runs on the network thread. */
#pragma once

#include "rpc/server.h"

extern const struct mr_rpc_service mr_ring_service; /* the handlers ignore its context */

/* Ends the calls whose blocks go to an inbox that its rank has closed. Called when the network
 * thread was woken. */
void mr_ring_service_turn(void);
