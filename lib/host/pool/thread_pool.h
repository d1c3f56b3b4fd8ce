/* A fork-join thread pool: a few threads share one piece of work, which has many items. A free
 * thread takes the next item, so a slow thread does not hold up the others. The caller is one of
 * the workers. Threads sleep between two runs; a pool of one worker has no thread. Work that a task
 * shares while it runs is done by host/pool/work_sharing.h. */
#pragma once

#include <stdint.h>

struct mr_thread_pool;

/* Makes a pool. `workers` is at least 1 and includes the caller. */
struct mr_thread_pool *mr_thread_pool_new(uint32_t workers);
/* Makes a pool that runs beside other threads that compute at length. Worker i prefers the
 * processor `first_cpu` + i, as mr_thread_cpu_prefer counts processors; the caller sets its own
 * preference. So the pool takes the same share of all processors and delays all other threads
 * equally. The pool's threads have short time slices: they begin soon after a run starts. */
struct mr_thread_pool *mr_thread_pool_new_placed(uint32_t workers, uint32_t first_cpu);
void mr_thread_pool_free(struct mr_thread_pool **p);
uint32_t mr_thread_pool_workers(const struct mr_thread_pool *p);
/* Returns how many workers are useful: one for each processor that this process may use, but at
 * most `most`. */
uint32_t mr_thread_pool_workers_here(uint32_t most);
/* Calls `work` once for each item below `count`, on any of the pool's threads and in any order.
 * Returns when all items are done; the caller then sees what they wrote. `worker` is below
 * mr_thread_pool_workers, and no two calls at the same time have the same `worker`. A pool does one
 * run at a time. */
void mr_thread_pool_run(struct mr_thread_pool *p,
    void (*work)(void *ctx, uint32_t item, uint32_t worker), void *ctx, uint32_t count);
