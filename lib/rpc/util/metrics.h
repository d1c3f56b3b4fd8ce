/* millrace.v1.Metrics: the counters of this process on its gRPC port. */
#pragma once

#include "host/os/stats.h"
#include "rpc/server.h"

/* Adds the service; to be called before the start. `stats` must outlive the server. */
void mr_rpc_server_add_metrics(struct mr_rpc_server *server, struct mr_stats *stats);
