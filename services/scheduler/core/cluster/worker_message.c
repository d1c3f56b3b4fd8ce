/* Handles a worker's message: missing inputs, completions (cluster/completion.c), tasks that the
 * worker gives back, tasks that it started, values that it was asked for and does not have, and its
 * heartbeat. */
#include "services/scheduler/core/cluster/worker_message.h"

#include "services/scheduler/core/cluster/completion.h"
#include "services/scheduler/core/cluster/store.h"
#include "services/scheduler/core/cluster/store_grace.h"
#include "services/scheduler/core/cluster/task_refs.h"
#include "services/scheduler/core/cluster/value_scan.h"
#include "services/scheduler/core/cluster/worker.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/place/quarantine.h"
#include "services/scheduler/core/state/cost.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"

/* Returns the value of the input that the worker misses; NULL: the input has no value. */
static const struct value *missed(const struct mr_sched *s, uint32_t task, uint32_t input)
{
    const struct job *j = job_of(s, task);
    if (input >= j->graph->nodes_count) return NULL;
    const struct task *u = &s->tasks[j->base + input];
    return is_done(u) && u->value != LITERAL ? &s->values[u->value] : NULL;
}

static void missing(struct mr_sched *s, uint32_t worker, const struct mr_ws_missing *m)
{
    uint32_t task = mr_sched__find(s, m->job.v, m->index);
    if (task == NONE || !is_current(&s->tasks[task], worker, m->attempt)) return;
    const struct value *v = missed(s, task, m->input);
    if (!v) return;
    uint32_t x = job_of(s, task)->base + m->input;
    bool is_given = s->tasks[x].flags & T_FIXED && !mr_sched__is_alias(s, x);
    /* a store that registers again may have the object on its disk */
    if (is_given && mr_sched__store_may_return(s, task)) return;
    bool is_gone = v->kind == V_OBJECT || (v->kind == V_AWAY && v->worker == worker);
    if (is_gone)
        mr_sched__task_lost(s, x);
    else if (v->worker == worker)
        /* the worker's copy is gone, but the scheduler has the bytes */
        mr_sched__value_unkeep(s, s->tasks[x].value);
}

/* Handles a missing input that the worker itself made and then lost. The completion of the input
 * may be in the same message, so this function is called after the completions. */
static void missing_now(struct mr_sched *s, uint32_t worker, const struct mr_ws_missing *m)
{
    uint32_t task = mr_sched__find(s, m->job.v, m->index);
    if (task == NONE || s->tasks[task].attempt != m->attempt) return;
    const struct value *v = missed(s, task, m->input);
    if (v && v->kind == V_OBJECT && v->worker == worker)
        mr_sched__task_lost(s, job_of(s, task)->base + m->input);
}

/* Calls `fn` for rows about the last attempt of a task that this worker has. */
static void each_current(struct mr_sched *s, uint32_t worker, const struct mr_ws_refs *refs,
    void (*fn)(struct mr_sched *s, uint32_t task))
{
    struct cursor cur = {.r = refs};
    for (uint32_t i = 0; i < refs->count; i++) {
        cursor_next(s, &cur);
        uint32_t task = task_at(s, cur.job, refs->index[i]);
        if (task != NONE && is_current(&s->tasks[task], worker, column(refs->attempt, i)))
            fn(s, task);
    }
}

/* Records the end of attempts that the worker was told to stop and then gave back. */
static void given_late(struct mr_sched *s, uint32_t worker, const struct mr_ws_refs *refs)
{
    struct cursor cur = {.r = refs};
    for (uint32_t i = 0; i < refs->count; i++) {
        cursor_next(s, &cur);
        uint32_t task = task_at(s, cur.job, refs->index[i]), attempt = column(refs->attempt, i);
        if (task == NONE || !is_current(&s->tasks[task], worker, attempt))
            mr_sched__stopping_end(
                s, worker, mr_sched__stopping_mark(cur.id, refs->index[i], attempt));
    }
}

static void given(struct mr_sched *s, uint32_t task)
{
    /* the task had run before the request to give it back arrived */
    if (s->tasks[task].fused_use == FUSED_CONSUMED) return;
    mr_sched__task_unsend(s, task);
    mr_sched__task_requeue(s, task);
}

static void started(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    if (t->flags & T_STEALING) s->workers[t->worker].stealing--;
    t->flags = (uint16_t)((t->flags & ~T_STEALING) | T_STARTED);
    mr_sched__probation_started(s, task);
}

static void left_slot(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct worker *w = &s->workers[t->worker];
    if (t->flags & T_LONG) return;
    w->queue_ns -= t->estimate;
    w->unknown -= (t->flags & T_UNKNOWN) != 0;
    w->long_sent++;
    t->estimate = 0;
    t->flags = (uint16_t)((t->flags & ~T_UNKNOWN) | T_LONG);
    /* the task releases the memory it was expected to take: else a job that the task has submitted
     * might wait for that memory */
    if (t->is_coming) mr_sched__store_coming(s, task, 0);
    mr_sched__probation_left_slot(s, task);
    mr_sched__load_changed(s, t->worker, false);
    s->has_work = true;
}

/* Handles values that the worker was asked to send and does not have: they are gone. */
static void unknown_values(struct mr_sched *s, uint32_t worker, const struct mr_ws_refs *refs)
{
    struct cursor cur = {.r = refs};
    for (uint32_t i = 0; i < refs->count; i++) {
        cursor_next(s, &cur);
        uint32_t task = task_at(s, cur.job, refs->index[i]);
        if (task == NONE || !is_done(&s->tasks[task]) || s->tasks[task].value >= LITERAL) continue;
        struct value *v = &s->values[s->tasks[task].value];
        if (!(v->flags & V_FETCHING) || v->worker != worker) continue;
        if (v->attempt != column(refs->attempt, i)) continue;
        if (v->kind == V_AWAY) mr_sched__task_lost(s, task);
    }
}

/* Raises the estimate of a task that has already run for longer than the estimate. The task is then
 * expected to run for as long again. Otherwise the worker's queue would count as short, and the
 * scheduler would not steal the tasks behind this task for idle workers. */
static void overdue(struct mr_sched *s, uint32_t slot, uint32_t task, uint64_t ns)
{
    struct task *t = &s->tasks[task];
    uint32_t least = (uint32_t)MR_MIN(ns, (uint64_t)UINT32_MAX);
    if (t->flags & T_LONG || t->estimate >= least) return;
    s->workers[slot].queue_ns += least - t->estimate;
    t->estimate = least;
}

/* Records which tasks run and since when, in case the worker is lost. */
static void running(struct mr_sched *s, uint32_t slot, const struct mr_ws_heartbeat *h)
{
    struct cursor cur = {.r = &h->running_tasks};
    const struct worker *w = &s->workers[slot];
    w->facts->began_count = 0;
    for (uint32_t i = 0; i < h->running_tasks.count; i++) {
        cursor_next(s, &cur);
        uint32_t task = task_at(s, cur.job, h->running_tasks.index[i]);
        uint32_t attempt = column(h->running_tasks.attempt, i);
        if (task == NONE || !is_current(&s->tasks[task], slot, attempt)) continue;
        started(s, task);
        uint64_t at = h->time_ns - MR_MIN(h->running_ns ? h->running_ns[i] : 0, h->time_ns);
        if (h->running_ns) overdue(s, slot, task, h->running_ns[i]);
        if (h->running_ns)
            mr_sched__began(s, slot, task, at + (uint64_t)mr_sched__clock_offset(s, slot));
    }
}

static void heartbeat(struct mr_sched *s, uint32_t slot, const struct mr_ws_heartbeat *h)
{
    struct worker *w = &s->workers[slot];
    w->memory_used_bytes = h->memory_used_bytes;
    w->running = h->running;
    w->tasks_started = h->tasks_started;
    w->tasks_done = h->tasks_done;
    w->is_full = false;
    int64_t offset = (int64_t)(s->now - h->time_ns);
    /* The smallest offset seen so far is from the message with the least network delay. NTP's clock
     * filter uses the same rule. */
    if (offset < w->clock_offset) w->clock_offset = offset;
    running(s, slot, h);
    mr_sched__load_changed(s, slot, false);
    mr_sched__batch(s, slot)->heard = h->sequence;
    s->has_work = true;
}

/* Called after a worker's completions. If a new store has replaced the worker's store, the values
 * of the old store were looked at then. The objects that the worker has just reported are lost,
 * too. */
static void lose_objects(struct mr_sched *s, uint32_t store)
{
    if (mr_sched__store_is_replaced(s, store)) mr_sched__scan(s, SCAN_STORE_LOST, store, NULL, 0);
}

void mr_sched__worker_message(
    struct mr_sched *s, uint32_t slot, uint64_t incarnation, const struct mr_ws_up *m)
{
    if (slot >= s->worker_list.top) return;
    struct worker *w = &s->workers[slot];
    /* the message is from a revoked incarnation, or its stream has ended */
    if (w->state != W_CONNECTED || w->incarnation != incarnation) return;
    w->last_heard = s->now;
    for (uint32_t i = 0; i < m->missing_count; i++)
        missing(s, slot, &m->missing[i]);
    mr_sched__completed(s, slot, &m->completed, NULL);
    for (uint32_t i = 0; i < m->missing_count; i++)
        missing_now(s, slot, &m->missing[i]);
    if (m->completed.objects_count) lose_objects(s, w->store);
    given_late(s, slot, &m->given);
    each_current(s, slot, &m->given, given);
    each_current(s, slot, &m->started, started);
    each_current(s, slot, &m->unknown, given);
    unknown_values(s, slot, &m->unknown);
    each_current(s, slot, &m->left_slot, left_slot);
    if (m->heartbeat) heartbeat(s, slot, m->heartbeat);
    mr_sched__probation_heard(s, slot);
    if (m->leaving && !w->is_retiring) mr_sched__worker_retire(s, slot, incarnation);
}
