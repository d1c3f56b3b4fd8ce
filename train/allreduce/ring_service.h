/* The gRPC service Collective: passes blocks from one rank to the inbox of the next rank of the
 * ring (ring_inbox.h). Runs on the network thread. */
#pragma once

#include "rpc/server.h"

/* The context that mr_rpc_server_add_service gets with this service is not used. */
extern const struct mr_rpc_service mr_ring_service;

/* Ends the calls whose blocks go to an inbox that its rank has closed. Called when the network
 * thread was woken. */
void mr_ring_service_turn(void);
