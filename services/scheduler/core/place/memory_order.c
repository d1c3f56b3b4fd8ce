/* Dispatch order under memory pressure. In a shuffle, many tasks each take a small part of a large
 * value. Depth-first order takes one part of every such value first, and so keeps all of them. If
 * they do not fit into memory, each value is spilled, and read back once for each part. So when a
 * store fills, and the first consumer has shown that its part is small, the other consumers of the
 * same value go next: their results together take no more memory than the value, which is then
 * released. This file knows sizes and consumers; only the stores know what is on disk. */
#include "services/scheduler/core/place/memory_order.h"

#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/place/place.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/assign.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/task.h"

#define VALUE_BYTES_MIN ((uint64_t)1 << 18) /* smaller values do not matter */
/* with less than 1/FULL_SHARE of memory in use, the order of dispatch does not change */
#define FULL_SHARE 8u

static bool is_filling(const struct mr_sched *s, uint32_t worker)
{
    const struct store *st = &s->stores[s->workers[worker].store];
    return st->memory_bytes && st->kept_bytes > st->memory_bytes / FULL_SHARE;
}

static bool is_listed(const struct mr_sched *s, uint32_t task)
{
    for (uint32_t i = 0; i < s->memory_order.count; i++)
        if (s->memory_order.at[i].task == task && s->memory_order.at[i].job == job_of(s, task)->id)
            return true;
    return false;
}

void mr_sched__memory_order_look(struct mr_sched *s, uint32_t task, uint32_t worker, uint64_t bytes)
{
    if (!is_filling(s, worker)) return;
    const struct job *j = job_of(s, task);
    uint32_t n;
    if (j->flags & (J_STOPPED | J_RANKED | J_FORGETTING)) return;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    for (uint32_t i = 0; i < n && s->memory_order.count < MEMORY_ORDER_MAX; i++) {
        const struct task *u = &s->tasks[j->base + in[i]];
        if (!mr_sched__is_object(s, j->base + in[i]) || u->flags & T_TARGET) continue;
        struct value *v = &s->values[u->value];
        bool is_small = v->bytes < VALUE_BYTES_MIN || v->bytes / MR_MAX(bytes, 1u) < u->consumers;
        if (is_small || v->flags & V_ORDERED || !u->consumers || is_listed(s, j->base + in[i]))
            continue;
        v->flags |= V_ORDERED; /* set once for each value: dispatch visits all consumers */
        s->memory_order.at[s->memory_order.count++] =
            (struct ordered_value){.job = j->id, .task = j->base + in[i]};
        s->has_work = true;
    }
}

static bool is_over(const struct mr_sched *s, const struct ordered_value *d)
{
    const struct job *j = job_of(s, d->task);
    return j->id != d->job || !is_done(&s->tasks[d->task]) ||
           j->flags & (J_STOPPED | J_HELD_BACK | J_FORGETTING);
}

static bool is_outranked(const struct mr_sched *s, const struct ordered_value *d)
{
    uint32_t urgent = mr_sched__queue_job(s);
    return urgent != NONE && s->jobs[urgent].priority > job_of(s, d->task)->priority;
}

/* Sends the ready consumers of the value. False: a consumer found no worker, or *left became 0; the
 * next call goes on with that consumer. True: all consumers were visited. */
static bool send_users(struct mr_sched *s, struct ordered_value *d, uint32_t *left)
{
    const struct job *j = job_of(s, d->task);
    uint32_t n;
    const uint32_t *users = mr_graph_dependents(j->graph, d->task - j->base, &n);
    for (; d->at < n; d->at++) {
        uint32_t u = j->base + users[d->at];
        const struct task *t = &s->tasks[u];
        d->is_partial |= t->state == MR_TASK_WAITING;
        if (t->state != MR_TASK_READY || !(t->flags & (T_QUEUED | T_PARKED))) continue;
        uint32_t w = *left ? mr_sched__place(s, u) : NONE;
        if (w == NONE) return false;
        mr_sched__task_unqueue(s, u);
        mr_sched__send(s, u, w);
        --*left;
    }
    return true;
}

/* Sends the ready consumers of the listed values, at most *left tasks. Usually a value stays in the
 * list until the value is released. While the list has a value, busy workers are sent no roots with
 * large results (mr_sched__is_crowded). If some consumers of a value wait for other inputs, the
 * value leaves the list when its ready consumers are sent. The wait could take long. */
void mr_sched__memory_order_dispatch(struct mr_sched *s, uint32_t *left)
{
    bool goes_on = true;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->memory_order.count; i++) {
        struct ordered_value *d = &s->memory_order.at[i];
        if (is_over(s, d)) continue;
        goes_on = goes_on && !is_outranked(s, d) && send_users(s, d, left);
        if (goes_on && d->is_partial) continue;
        s->memory_order.at[kept++] = *d;
    }
    s->memory_order.count = kept;
}
