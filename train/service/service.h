/* The gRPC services Parameters and Collective of a worker process, for roles on other nodes. They
 * run on the network thread and never block it. A pull that has to wait is tried again when a shard
 * publishes a version. */
#pragma once

#include "rpc/loop.h"
#include "rpc/server.h"

struct mr_params_service;

/* Opens the services. Called before the server starts. Uses mr_rpc_loop_set_turn and
 * mr_shard_set_sink, so a process can open the services only once at a time. */
struct mr_params_service *mr_params_service_open(
    struct mr_rpc_server *server, struct mr_rpc_loop *loop);
/* Closes the services. Called after the server was closed. */
void mr_params_service_close(struct mr_params_service **s);
/* Returns the earliest deadline of a waiting call. The function of mr_rpc_loop_set_turn has to run
 * by then. */
mr_time mr_params_service_deadline(const struct mr_params_service *s);
