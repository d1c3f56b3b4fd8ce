/* The gRPC side of the gateway: one thread with one loop and a channel to each service. It makes a
 * gRPC call for each exchange (a request from HTTP, exchange.h) and knows nothing of HTTP. */
#pragma once

#include "gateway/bridge/exchange.h"
#include "host/os/fd_deadlines.h"
#include "host/os/stats.h"

#define MR_BRIDGE_STORES_MAX 64

struct mr_bridge_options {
    const char *scheduler;
    const char *trainer;       /* NULL: there is no trainer */
    const char *const *stores; /* stores_count 0: the scheduler is asked for the addresses */
    size_t stores_count;
    struct mr_secret_file *secrets; /* NULL: calls carry no secret */
    struct mr_fd_deadlines *fd_deadlines;
    struct mr_stats *stats; /* the gateway's own metrics, for /metrics */
    uint32_t exchanges_max;
};

enum mr_bridge_post_kind {
    MR_BRIDGE_START,
    MR_BRIDGE_CHUNK,
    MR_BRIDGE_HALF_CLOSE,
    MR_BRIDGE_CREDIT,
    MR_BRIDGE_LEAVE,
    MR_BRIDGE_STOP,
};

struct mr_bridge;

struct mr_bridge *mr_bridge_new(const struct mr_bridge_options *options);
/* To be called after the last HTTP thread has ended. */
void mr_bridge_free(struct mr_bridge **bridge);

/* Posts to the bridge; called by HTTP threads. START gives the exchange to the bridge, CHUNK gives
 * the chunk. Nothing may be posted about an exchange after its LEAVE. */
void mr_bridge_post(struct mr_bridge *b, enum mr_bridge_post_kind kind, struct mr_exchange *x,
    struct mr_chunk *chunk);

void mr_bridge_stop(struct mr_bridge *b); /* on any thread: makes mr_bridge_run return */
void mr_bridge_run(struct mr_bridge *b);

/* To be called after mr_bridge_run. Lets the running calls finish until `deadline`, then ends them
 * with UNAVAILABLE. After the return every exchange has its END. `unanswered` counts connections
 * without an answer to their first request; the drain waits up to a second for these requests. */
void mr_bridge_drain(struct mr_bridge *b, mr_time deadline, const struct mr_gauge *unanswered);
