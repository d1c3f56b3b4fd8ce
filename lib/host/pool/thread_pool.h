/* A fork-join thread pool: a few threads share one piece of work, which has many items. A thread
 * that is free takes the next item, so a thread that others hold up does not hold up all. The
 * caller is one of the workers. Threads sleep between two runs; a pool of one worker has no thread.
 *
 * Work that a task shares while it runs is work_sharing's (host/pool/work_sharing.h). */
#pragma once

#include <stdint.h>

struct mr_thread_pool;

/* `workers` is at least one; the caller is the first of them. */
struct mr_thread_pool *mr_thread_pool_new(uint32_t workers);
/* A pool beside threads that compute at length. Worker i prefers the processor `first_cpu` + i, as
 * mr_thread_cpu_prefer counts them; the caller sets its own preference. So the pool takes the same
 * from all processors, and holds up none of the other threads more than the rest. Its threads have
 * short time slices: they begin soon after a run does. */
struct mr_thread_pool *mr_thread_pool_new_placed(uint32_t workers, uint32_t first_cpu);
void mr_thread_pool_free(struct mr_thread_pool **p);
uint32_t mr_thread_pool_workers(const struct mr_thread_pool *p);
/* How many workers are useful here: one for each processor that this process may use, but at most
 * `most`. */
uint32_t mr_thread_pool_workers_here(uint32_t most);
/* Calls `work` for each item below `count`, on any thread and in any order. Returns when all items
 * are done; the caller then sees what they wrote. `worker` is below mr_thread_pool_workers, and no
 * two threads have the same one at once. One run at a time. */
void mr_thread_pool_run(struct mr_thread_pool *p,
    void (*work)(void *ctx, uint32_t item, uint32_t worker), void *ctx, uint32_t count);
