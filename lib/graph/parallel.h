/* An interface to run work on several threads. lib/graph starts no threads; a caller may lend its
 * thread pool (host/pool/thread_pool.h). Without a thread pool the work runs on the caller's
 * thread, with the same result. */
#pragma once

#include <stdint.h>

struct mr_graph_parallel {
    uint32_t workers;
    /* Calls `work` for each item below `count` and waits for all calls, as mr_thread_pool_run
     * does. */
    void (*run)(void *ctx, void (*work)(void *arg, uint32_t item, uint32_t worker), void *arg,
        uint32_t count);
    void *ctx;
};
