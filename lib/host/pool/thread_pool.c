/* A fork-join thread pool (thread_pool.h). A lock protects the number of the next item of work.
 * Taking the lock costs little: it takes tens of nanoseconds, an item tens of microseconds. */
#include "host/pool/thread_pool.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/machine.h"
#include "host/thread.h"

#include <pthread.h>
#include <stdbool.h>

struct worker {
    struct mr_thread_pool *pool;
    struct mr_thread *thread;
    uint32_t number;
};

struct mr_thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t more; /* signals that a run has begun, or that the pool ends */
    pthread_cond_t done; /* signals that all items of a run are done */
    void (*work)(void *ctx, uint32_t item, uint32_t worker);
    void *ctx;
    uint32_t next, count; /* number of the next item, and number of all items of the run */
    uint32_t busy;        /* workers that are running an item */
    bool is_over;
    bool is_placed;
    uint32_t first_cpu;
    uint32_t workers_count;  /* workers, including the caller */
    struct worker workers[]; /* the threads of the workers, without the caller */
};

/* Runs items until none is left. The lock is held at entry and at return. */
static void take_items(struct mr_thread_pool *p, uint32_t worker)
{
    while (p->next < p->count) {
        uint32_t item = p->next++;
        p->busy++;
        (void)pthread_mutex_unlock(&p->lock);
        p->work(p->ctx, item, worker);
        (void)pthread_mutex_lock(&p->lock);
        if (!--p->busy && p->next >= p->count) (void)pthread_cond_signal(&p->done);
    }
}

static void run_worker(void *ctx)
{
    const struct worker *w = ctx;
    struct mr_thread_pool *p = w->pool;
    if (p->is_placed) {
        mr_thread_cpu_prefer(p->first_cpu + w->number);
        mr_thread_set_short_slice(true);
    }
    (void)pthread_mutex_lock(&p->lock);
    while (!p->is_over) {
        take_items(p, w->number);
        if (p->is_over) break;
        (void)pthread_cond_wait(&p->more, &p->lock);
        if (!p->is_placed) continue;
        /* mr_thread_cpu_return may make system calls, so it runs without the lock. */
        (void)pthread_mutex_unlock(&p->lock);
        mr_thread_cpu_return();
        (void)pthread_mutex_lock(&p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

uint32_t mr_thread_pool_workers_here(uint32_t most)
{
    struct mr_machine machine;
    mr_machine_read(&machine);
    return MR_MIN(machine.cpus, most);
}

static struct mr_thread_pool *open_pool(
    uint32_t workers, bool is_placed, uint32_t first_cpu, const char *name)
{
    mr_assert(workers);
    struct mr_thread_pool *p = mr_alloc(sizeof *p + (workers - 1) * sizeof *p->workers);
    p->workers_count = workers;
    p->is_placed = is_placed;
    p->first_cpu = first_cpu;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->more, NULL);
    (void)pthread_cond_init(&p->done, NULL);
    for (uint32_t i = 0; i + 1 < workers; i++) {
        p->workers[i] = (struct worker){.pool = p, .number = i + 1};
        p->workers[i].thread = mr_thread_start(name, run_worker, &p->workers[i]);
    }
    return p;
}

struct mr_thread_pool *mr_thread_pool_new(uint32_t workers)
{
    return open_pool(workers, false, 0, "pool");
}

struct mr_thread_pool *mr_thread_pool_new_placed(uint32_t workers, uint32_t first_cpu)
{
    return open_pool(workers, true, first_cpu, "pool-placed");
}

void mr_thread_pool_free(struct mr_thread_pool **pool)
{
    if (!*pool) return;
    struct mr_thread_pool *p = MR_STEAL(*pool);
    (void)pthread_mutex_lock(&p->lock);
    p->is_over = true;
    (void)pthread_cond_broadcast(&p->more);
    (void)pthread_mutex_unlock(&p->lock);
    for (uint32_t i = 0; i + 1 < p->workers_count; i++)
        mr_thread_join(&p->workers[i].thread);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->more);
    (void)pthread_cond_destroy(&p->done);
    mr_release(p);
}

uint32_t mr_thread_pool_workers(const struct mr_thread_pool *p)
{
    return p->workers_count;
}

void mr_thread_pool_run(struct mr_thread_pool *p,
    void (*work)(void *ctx, uint32_t item, uint32_t worker), void *ctx, uint32_t count)
{
    if (p->is_placed) mr_thread_cpu_return();
    (void)pthread_mutex_lock(&p->lock);
    p->work = work;
    p->ctx = ctx;
    p->next = 0;
    p->count = count;
    if (count > 1) (void)pthread_cond_broadcast(&p->more);
    take_items(p, 0);
    while (p->busy)
        (void)pthread_cond_wait(&p->done, &p->lock);
    p->count = 0;
    (void)pthread_mutex_unlock(&p->lock);
}
