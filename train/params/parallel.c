/* Threads that take the same call over different parts of a vector, piece by piece: whoever is free
 * takes the next piece, so that a thread that others hold up does not hold up all. */
#include "train/params/parallel.h"

#include "base/alloc.h"
#include "host/monitor.h"
#include "host/thread.h"

#include <stdatomic.h>
#include <stdbool.h>

#define THREADS_MAX 16u
#define PIECE ((uint64_t)65536)      /* numbers */
#define ALONE_MAX ((uint64_t)262144) /* below, waking the others costs more than they save */

struct mr_team {
    struct mr_monitor *lock; /* guards round, busy, ends */
    uint64_t round;
    uint32_t busy; /* threads inside the round */
    bool ends;
    void (*fn)(void *ctx, uint64_t first, uint64_t count);
    void *ctx;
    uint64_t count;
    _Atomic uint64_t next;
    uint32_t first; /* processor, that of the caller */
    _Atomic uint32_t settled;
    uint32_t threads_count; /* without the caller */
    struct mr_thread *threads[THREADS_MAX];
};

static void pieces(struct mr_team *t)
{
    for (;;) {
        uint64_t at = atomic_fetch_add(&t->next, PIECE);
        if (at >= t->count) return;
        t->fn(t->ctx, at, MR_MIN(PIECE, t->count - at));
    }
}

static void help(void *ctx)
{
    struct mr_team *t = ctx;
    uint64_t seen = 0;
    mr_thread_settle(t->first + atomic_fetch_add(&t->settled, 1));
    mr_thread_take_short_turns(true);
    mr_monitor_enter(t->lock);
    for (;;) {
        while (t->round == seen && !t->ends)
            (void)mr_monitor_wait(t->lock, MR_NEVER);
        if (t->ends) break;
        seen = t->round;
        mr_monitor_leave(t->lock);
        mr_thread_come_home();
        pieces(t);
        mr_monitor_enter(t->lock);
        if (--t->busy == 0) mr_monitor_notify(t->lock);
    }
    mr_monitor_leave(t->lock);
}

struct mr_team *mr_team_new(uint32_t threads, uint32_t first)
{
    struct mr_team *t = mr_alloc(sizeof *t);
    t->lock = mr_monitor_new();
    t->first = first;
    atomic_init(&t->settled, 1);
    t->threads_count = MR_MIN(threads ? threads - 1 : 0, THREADS_MAX);
    for (uint32_t i = 0; i < t->threads_count; i++)
        t->threads[i] = mr_thread_start("ps-helper", help, t);
    return t;
}

void mr_team_free(struct mr_team **team)
{
    if (!*team) return;
    struct mr_team *t = MR_STEAL(*team);
    mr_monitor_enter(t->lock);
    t->ends = true;
    mr_monitor_notify(t->lock);
    mr_monitor_leave(t->lock);
    for (uint32_t i = 0; i < t->threads_count; i++)
        mr_thread_join(&t->threads[i]);
    mr_monitor_free(&t->lock);
    mr_release(t);
}

void mr_team_run(struct mr_team *t, uint64_t count,
    void (*fn)(void *ctx, uint64_t first, uint64_t count), void *ctx)
{
    if (!t->threads_count || count < ALONE_MAX) {
        if (count) fn(ctx, 0, count);
        return;
    }
    mr_monitor_enter(t->lock);
    t->fn = fn;
    t->ctx = ctx;
    t->count = count;
    atomic_store(&t->next, 0);
    t->busy = t->threads_count;
    t->round++;
    mr_monitor_notify(t->lock);
    mr_monitor_leave(t->lock);
    mr_thread_come_home();
    pieces(t);
    mr_monitor_enter(t->lock);
    while (t->busy)
        (void)mr_monitor_wait(t->lock, MR_NEVER);
    mr_monitor_leave(t->lock);
}
