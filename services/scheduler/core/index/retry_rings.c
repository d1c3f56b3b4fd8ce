/* Two rings of ready tasks that are retried under special rules: quarantined tasks, and tasks that
 * twice had too little memory. Also records which attempts workers were told to stop, and whether
 * another task starts on the node that is kept free for a retry. place/quarantine.c and
 * place/memory_retry.c decide where and when the tasks run. */
#include "services/scheduler/core/index/retry_rings.h"

#include "base/assert.h"

/* after this time an attempt that was told to stop no longer counts as stopping: by then the
 * attempt or its worker's process has ended (MR_WORKER_GRACE) */
#define STOPPING_MAX (3 * MR_SECOND)

static void ring_push(struct task_ring *r, uint32_t task, uint32_t room)
{
    mr_assert(r->count < room);
    r->at[(r->first + r->count++) % room] = task;
}

uint32_t mr_sched__ring_pop(struct task_ring *r, uint32_t room)
{
    uint32_t task = r->at[r->first];
    mr_assert(r->count > 0);
    r->first = (r->first + 1) % room;
    r->count--;
    return task;
}

void mr_sched__quarantine_add(struct mr_sched *s, uint32_t task)
{
    ring_push(&s->quarantine.ring, task, s->config.tasks_max);
    s->has_work = true;
}

void mr_sched__memory_retry_add(struct mr_sched *s, uint32_t task)
{
    ring_push(&s->memory_retry.ring, task, s->config.tasks_max);
    s->has_work = true;
}

bool mr_sched__is_stopping(const struct mr_sched *s, const struct worker *w)
{
    return w->stopping && s->now < mr_time_after(w->stopping_at, STOPPING_MAX);
}

uint32_t mr_sched__stopping_mark(uint64_t job, uint32_t index, uint32_t attempt)
{
    return (uint32_t)mr_hash_u64(mr_hash_u64(job) + ((uint64_t)index << 32 | attempt));
}

void mr_sched__stopping_add(struct mr_sched *s, uint32_t worker, uint32_t mark)
{
    struct worker *w = &s->workers[worker];
    if (!mr_sched__is_stopping(s, w)) w->stopping = 0;
    w->stopping += mark;
    w->stopping_at = s->now;
}

/* A mark is a hash of an attempt. `stopping` of a worker is the sum of the marks of the attempts
 * that the worker was told to stop and that have not ended. If the worker reports the end of one of
 * several attempts twice, the sum does not return to 0. Then mr_sched__is_stopping is true until
 * STOPPING_MAX has passed. */
void mr_sched__stopping_end(struct mr_sched *s, uint32_t worker, uint32_t mark)
{
    struct worker *w = &s->workers[worker];
    if (!mr_sched__is_stopping(s, w)) return;
    w->stopping -= mark;
    if (!w->stopping && s->memory_retry.ring.count) s->has_work = true;
}

/* Called when `task` starts. If a node is kept free for another task, and `task` starts there, the
 * attempt of that other task does not count as undisturbed. This happens if `task` was sent before
 * its inputs existed, or if a worker that registered again still had `task`. */
void mr_sched__memory_retry_runs(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    if (task == s->memory_retry.reserved_task || t->flags & T_LONG ||
        s->workers[t->worker].store != s->memory_retry.reserved_store)
        return;
    s->memory_retry.is_disturbed = true;
}
