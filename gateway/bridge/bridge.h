/* The gRPC side of the gateway: one loop, one thread, channels to the services. It carries out
 * exchanges and knows nothing of HTTP. */
#pragma once

#include "gateway/bridge/exchange.h"
#include "host/os/fd_deadlines.h"
#include "host/os/stats.h"

#define MR_BRIDGE_STORES_MAX 64

struct mr_bridge_options {
    const char *scheduler;
    const char *trainer;       /* NULL: none */
    const char *const *stores; /* none: the scheduler is asked where they are */
    size_t stores_count;
    struct mr_secret_file *secrets; /* NULL: none */
    struct mr_fd_deadlines *fd_deadlines;
    struct mr_stats *stats; /* our own counters, which /metrics shows beside the services' */
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
void mr_bridge_free(struct mr_bridge **bridge); /* when no HTTP thread is left */

/* HTTP threads. `x` is given with START, a chunk with CHUNK. LEAVE is the last word about an
 * exchange. */
void mr_bridge_post(struct mr_bridge *b, enum mr_bridge_post_kind kind, struct mr_exchange *x,
    struct mr_chunk *chunk);

void mr_bridge_stop(struct mr_bridge *b); /* any thread: mr_bridge_run returns */
void mr_bridge_run(struct mr_bridge *b);

/* After run: lets what is under way finish until `deadline`, then ends it with UNAVAILABLE. No
 * exchange is without its END afterwards. `fresh` connections have sent no request yet, or are
 * sending it: they have a second. */
void mr_bridge_drain(struct mr_bridge *b, mr_time deadline, const struct mr_gauge *fresh);
