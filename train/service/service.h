/* The gRPC services Parameters and Collective of a worker process, for roles on other nodes. They
 * run on the network thread and never block it. A pull that has to wait is tried again when a shard
 * publishes a version. */
#pragma once

#include "rpc/loop.h"
#include "rpc/server.h"

struct mr_params_service;

/* Call before the server starts. Occupies mr_rpc_loop_set_turn. One for each process. */
struct mr_params_service *mr_params_service_open(
    struct mr_rpc_server *server, struct mr_rpc_loop *loop);
/* Call after the server was closed. */
void mr_params_service_close(struct mr_params_service **s);
/* The earliest deadline of a waiting call: the loop must turn by then. */
mr_time mr_params_service_deadline(const struct mr_params_service *s);
