/* Sends a task to a worker: adds rows to the worker's batch. The worker has the value of each input
 * already, or gets it in the same batch, or in a later one as soon as the value exists
 * (task/task.c, dependents_done). */
#include "services/scheduler/core/task/assign.h"

#include "base/assert.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/placement_table.h"
#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/state/cost.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/fused.h"
#include "services/scheduler/core/task/job_state.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value_delivery.h"

#include <string.h>

static void put(struct mr_buf *b, const void *p, size_t n)
{
    void *to = mr_buf_extend(b, n);
    mr_assert(to);
    memcpy(to, p, n);
}

static void put_u32(struct mr_buf *b, uint32_t v)
{
    put(b, &v, sizeof v);
}

static struct mr_str text_put(struct mr_buf *b, struct mr_str text)
{
    size_t at = b->n;
    mr_buf_add_str(b, text);
    return mr_str_of(b->p + at, text.n);
}

static void send_extra(
    struct mr_sched *s, struct mr_sched_batch *b, uint32_t task, const struct mr_task_options *o)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_of(s, task);
    uint32_t index = task - j->base;
    bool is_alone = t->flags & T_QUARANTINED && !(t->flags & T_LONG);
    if (!o && !is_alone) return;
    b->has_more = true;
    struct mr_sched_extra x = {.row = b->tasks.count, .alone = is_alone};
    x.long_running = t->flags & T_LONG;
    x.resources_at = (uint32_t)(b->resources.n / sizeof(struct mr_sched_amount));
    const struct class *c = &s->classes[t->class];
    for (uint32_t r = 0; t->class >= s->config.ops_max && r < s->class_list.resources_count; r++) {
        if (!c->need[r]) continue;
        struct mr_sched_amount a = {.kind = r, .micro = c->need[r]};
        put(&b->resources, &a, sizeof a);
        x.resources_count++;
    }
    if (o) {
        x.timeout_ns = o->timeout;
        x.persist = o->persist;
        if (o->persist) {
            x.persist_name_at = (uint32_t)b->text.n;
            x.persist_name_bytes = (uint32_t)text_put(&b->text, o->persist_name).n;
            if (j->graph->hash) x.definition = j->graph->hash[index];
        }
    }
    if (!is_alone && !x.timeout_ns && !x.persist && !x.long_running && !x.resources_count) return;
    x.key_at = (uint32_t)b->text.n;
    x.key_bytes = (uint32_t)text_put(&b->text, mr_graph_key(j->graph, index)).n;
    put(&b->extra, &x, sizeof x);
}

static uint32_t send_inputs(
    struct mr_sched *s, struct mr_sched_batch *b, uint32_t task, uint32_t worker)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    if (!n) return 0;
    bool refers = mr_sched__is_referring(s, task);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = j->base + in[i];
        const struct task *u = &s->tasks[x];
        if (!is_done(u)) continue;
        mr_sched__send_value(s, x, worker);
        if (u->value < LITERAL && s->values[u->value].worker == worker && u->consumers == 1 &&
            !refers && !(u->flags & (T_TARGET | T_FIXED))) {
            s->values[u->value].flags |= V_LAST;
            put_u32(&b->last_use, (uint32_t)(b->inputs.n / sizeof(uint32_t)) + i);
        }
    }
    put(&b->inputs, in, n * sizeof *in);
    return n;
}

static int32_t priority_of(const struct job *j, const struct mr_task_options *o)
{
    /* MR_PRIORITY_MAX keeps a task's priority below 1000 */
    return j->priority * 1000 + (o ? o->priority : 0);
}

static void cell(struct mr_sched_rows *r, enum mr_sched_column c, uint32_t v)
{
    if (!(r->filled >> c & 1)) {
        if (v == mr_sched_usual(r, c)) return;
        mr_sched_rows_fill(r, c);
    }
    r->block[(size_t)c * r->room + r->count] = v;
}

static void send_row(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    struct task *t = &s->tasks[task];
    const struct job *j = job_of(s, task);
    uint32_t index = task - j->base, op = j->ops[j->graph->op[index]];
    const struct mr_task_options *o = mr_graph_options(j->graph, index);
    struct mr_sched_batch *b = mr_sched__batch(s, worker);
    struct mr_sched_rows *r = &b->tasks;
    if (r->count == r->room) mr_sched_rows_grow(r);
    if (!r->count) mr_sched_rows_begin(r, op);
    cell(r, MR_COLUMN_INPUTS_COUNT, send_inputs(s, b, task, worker));
    struct mr_str args = mr_sched__args(s, task);
    if (o || t->flags & T_QUARANTINED) send_extra(s, b, task, o);
    put(&b->args, args.p, args.n);
    cell(r, MR_COLUMN_ARGS_BYTES, (uint32_t)args.n);
    cell(r, MR_COLUMN_INDEX, index);
    cell(r, MR_COLUMN_ATTEMPT, t->attempt);
    cell(r, MR_COLUMN_OP, op);
    cell(r, MR_COLUMN_PRIORITY, (uint32_t)priority_of(j, o));
    uint32_t uses = mr_sched__fused_uses(s, task);
    t->fused_use = uses && !(uses & MR_USES_OF_LOOP) ? FUSED_COUNTED : FUSED_REPORTED;
    cell(r, MR_COLUMN_USES, uses);
    mr_sched_runs_add(&r->runs, j->id, j->flags & J_UNFUSED);
    r->count++;
}

static void link_sent(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    struct task *t = &s->tasks[task];
    struct worker *w = &s->workers[worker];
    uint32_t op = s->classes[t->class].op;
    t->worker = worker;
    t->flags |= T_SENT;
    if (s->ops[op].long_running)
        /* the flag is missing if no worker had offered the operator when the task was planned */
        t->flags |= T_LONG;
    t->prev = w->sent_tail;
    t->next = NONE;
    if (t->prev == NONE)
        w->sent_head = task;
    else
        s->tasks[t->prev].next = task;
    w->sent_tail = task;
    w->sent++;
    t->estimate = 0;
    if (t->flags & T_LONG) {
        w->long_sent++;
    } else {
        t->estimate = (uint32_t)MR_MIN(mr_sched__estimate(s, op), (uint64_t)UINT32_MAX);
        if (!s->ops[op].estimate_ns) {
            t->flags |= T_UNKNOWN;
            w->unknown++;
        }
    }
    w->queue_ns += t->estimate;
    if (t->class >= s->config.ops_max)
        for (uint32_t r = 0; r < s->class_list.resources_count; r++)
            w->facts->taken[r] += s->classes[t->class].need[r];
    if (!(t->flags & T_QUARANTINED)) return;
    mr_assert(w->probation == NONE);
    w->probation = task;
    w->is_closed = mr_sched__is_probation_alone(t);
}

/* Called when the task was sent. A dependent may now be sent, too, if each of its inputs exists or
 * the task that makes the input was sent. The worker is recorded as a hint for the dependent's
 * placement. */
static void dependents_sent(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct task *u = &s->tasks[j->base + d[i]];
        if (u->state != MR_TASK_WAITING || !mr_sched__is_edge(s, task, j->base + d[i])) continue;
        mr_assert(u->unsent > 0);
        u->unsent--;
        if (u->flags & T_SENT) continue;
        if (u->worker == NONE) u->worker = worker;
        mr_sched__task_requeue(s, j->base + d[i]);
    }
}

void mr_sched__send(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    struct task *t = &s->tasks[task];
    mr_assert(is_unfinished(t) && !(t->flags & (T_SENT | T_QUEUED | T_PARKED)));
    t->attempt++;
    t->sent_us = sent_us(s);
    send_row(s, task, worker);
    link_sent(s, task, worker);
    if (t->state == MR_TASK_READY) mr_sched__task_move(s, task, MR_TASK_RUNNING);
    dependents_sent(s, task, worker);
    mr_sched__cache_note(s, task, worker);
    mr_sched__load_changed(s, worker, true);
    mr_sched__queue_charge(s, task);
    s->totals.tasks_sent++;
    if (job_at(s, t)->state == MR_JOB_PENDING) mr_sched__job_started(s, job_no(s, t));
}

/* Marks the task as sent to a worker that registers again and has the task in its queue: no row is
 * sent. */
void mr_sched__send_adopted(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    struct task *t = &s->tasks[task];
    t->sent_us = sent_us(s);
    link_sent(s, task, worker);
    if (t->state == MR_TASK_READY) mr_sched__task_move(s, task, MR_TASK_RUNNING);
    dependents_sent(s, task, worker);
    mr_sched__load_changed(s, worker, true);
    if (job_at(s, t)->state == MR_JOB_PENDING) mr_sched__job_started(s, job_no(s, t));
}
