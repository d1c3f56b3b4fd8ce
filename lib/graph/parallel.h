/* What runs work on several threads. This folder starts no thread: a caller that has a thread pool
 * (host/pool/thread_pool.h) lends it. Without one, all work runs in turn, with the same outcome. */
#pragma once

#include <stdint.h>

struct mr_graph_parallel {
    uint32_t workers;
    /* As mr_thread_pool_run. */
    void (*run)(void *ctx, void (*work)(void *arg, uint32_t item, uint32_t worker), void *arg,
        uint32_t count);
    void *ctx;
};
