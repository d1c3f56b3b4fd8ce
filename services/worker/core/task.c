/* The life cycle of a task on this worker, from the ready queue to its end, with cancellation,
 * stealing and drain. A strand is a list of tasks that one executor runs back to back; a cut takes
 * the last tasks off a strand. */
#include "services/worker/core/internal.h"

/* The states of a task: WAITING ──▶ READY ──▶ GIVEN ──▶ FREE (the task has run).
 * - Any state ──▶ FREE: the task was cancelled, stolen or returned, or an input was lost.
 * - READY ──▶ WAITING: an input went away.
 * - GIVEN ──▶ WAITING: the task was cut or skipped, or is attempted again. */
#define S(x) (1u << TASK_##x)
static const unsigned allowed[] = {
    [TASK_FREE] = S(WAITING),
    [TASK_WAITING] = S(READY) | S(FREE),
    [TASK_READY] = S(WAITING) | S(GIVEN) | S(FREE),
    [TASK_GIVEN] = S(WAITING) | S(FREE),
};
#undef S

void mr_worker__task_move(struct mr_worker *w, uint32_t task, enum task_state to)
{
    struct task *t = &w->tasks[task];
    mr_assert(allowed[t->state] & (1u << to));
    w->ready_count -= t->state == TASK_READY;
    w->given_count -= t->state == TASK_GIVEN;
    w->ready_count += to == TASK_READY;
    w->given_count += to == TASK_GIVEN;
    t->state = to;
}

bool mr_worker__task_before(const struct mr_worker *w, uint32_t a, uint32_t b)
{
    const struct task *x = &w->tasks[a], *y = &w->tasks[b];
    if (x->priority != y->priority) return x->priority > y->priority;
    if (x->order != y->order) return x->order < y->order;
    const struct value *v = &w->values[x->value], *u = &w->values[y->value];
    if (v->job != u->job) return value_job(w, v).v < value_job(w, u).v;
    return v->index < u->index;
}

static void heap_put(struct mr_worker *w, struct need *n, uint32_t at, uint32_t task)
{
    n->heap[at] = task;
    w->tasks[task].heap_at = at;
}

static void heap_up(struct mr_worker *w, struct need *n, uint32_t at, uint32_t task)
{
    while (at) {
        uint32_t up = (at - 1) / 2;
        if (!mr_worker__task_before(w, task, n->heap[up])) break;
        heap_put(w, n, at, n->heap[up]);
        at = up;
    }
    heap_put(w, n, at, task);
}

static void heap_down(struct mr_worker *w, struct need *n, uint32_t at, uint32_t task)
{
    for (;;) {
        uint32_t down = 2 * at + 1;
        if (down >= n->count) break;
        if (down + 1 < n->count && mr_worker__task_before(w, n->heap[down + 1], n->heap[down]))
            down++;
        if (!mr_worker__task_before(w, n->heap[down], task)) break;
        heap_put(w, n, at, n->heap[down]);
        at = down;
    }
    heap_put(w, n, at, task);
}

/* Called when the task will start soon: tells the store to have the task's inputs in memory by
 * then. */
static void want_inputs(struct mr_worker *w, const struct task *t)
{
    if (!w->has_spilled || w->ops[t->op].flags & MR_WORKER_OP_BY_REFERENCE) return;
    const struct edge *edges = task_edges(t);
    for (uint32_t i = 0; i < t->inputs_count; i++) {
        const struct value *v = &w->values[edges[i].value];
        if (!v->blob) mr_worker__fx_add(w, MR_WORKER_WANT)->object.object = v->object;
    }
}

void mr_worker__task_ready(struct mr_worker *w, uint32_t task)
{
    struct need *n = &w->needs[w->tasks[task].needs];
    mr_assert(w->tasks[task].missing == 0);
    want_inputs(w, &w->tasks[task]);
    mr_worker__task_move(w, task, TASK_READY);
    heap_up(w, n, n->count++, task);
}

static void heap_remove(struct mr_worker *w, uint32_t task)
{
    struct need *n = &w->needs[w->tasks[task].needs];
    uint32_t at = w->tasks[task].heap_at;
    uint32_t last = n->heap[--n->count];
    if (at && mr_worker__task_before(w, last, n->heap[(at - 1) / 2])) {
        heap_up(w, n, at, last);
    } else {
        heap_down(w, n, at, last);
    }
}

void mr_worker__task_unready(struct mr_worker *w, uint32_t task)
{
    heap_remove(w, task);
    mr_worker__task_move(w, task, TASK_WAITING);
}

/* Updates the estimate: the operator may have been measured since the task came. */
static void cost_again(struct mr_worker *w, struct task *t)
{
    const struct op *o = &w->ops[t->op];
    if (!o->measured) return;
    w->queue_cost_ns += o->cost_ns - t->cost_ns;
    t->cost_ns = o->cost_ns;
}

void mr_worker__task_give(struct mr_worker *w, uint32_t task)
{
    cost_again(w, &w->tasks[task]);
    if (w->tasks[task].state == TASK_READY) {
        heap_remove(w, task);
    } else {
        /* The task waits only for results of the same strand. */
        mr_worker__task_move(w, task, TASK_READY);
    }
    mr_worker__task_move(w, task, TASK_GIVEN);
}

void mr_worker__task_park(struct mr_worker *w, uint32_t task, struct mr_str why)
{
    struct task *t = &w->tasks[task];
    mr_worker__task_move(w, task, TASK_WAITING);
    if (!t->missing) {
        mr_worker__task_ready(w, task);
        return;
    }
    const struct edge *edges = task_edges(t);
    for (uint32_t i = 0; i < t->inputs_count; i++) {
        const struct value *v = &w->values[edges[i].value];
        if (edges[i].has || !v->lost) continue;
        mr_worker__task_lose(w, task, v->index, why);
        return;
    }
}

void mr_worker__task_report(struct mr_worker *w, uint32_t task, enum mr_outcome outcome)
{
    struct task *t = &w->tasks[task];
    if (t->mute) return;
    struct value *v = &w->values[t->value];
    mr_worker__out_add(w, value_job(w, v), v->index, t->attempt, outcome);
}

void mr_worker__task_fail(
    struct mr_worker *w, uint32_t task, enum mr_outcome outcome, int code, struct mr_str text)
{
    mr_assert(!w->tasks[task].mute);
    mr_worker__task_report(w, task, outcome);
    mr_worker__out_failure(w, mr_worker__out_last(w), code, text, MR_STR(""), MR_STR(""));
    mr_worker__task_end(w, task, false);
}

void mr_worker__task_lose(struct mr_worker *w, uint32_t task, uint32_t input, struct mr_str why)
{
    struct task *t = &w->tasks[task];
    struct value *v = &w->values[t->value];
    mr_assert(!t->mute);
    struct missing_row row = {.job = value_job(w, v),
        .index = v->index,
        .attempt = t->attempt,
        .input = input,
        .why = mr_worker__blob_copy(&w->pool, why)};
    mr_worker__missing_add(w, &row);
    mr_worker__task_report(w, task, MR_OUTCOME_LOST_INPUT);
    mr_worker__task_end(w, task, false);
}

void mr_worker__task_take_again(struct task *t)
{
    if (!t->again) return;
    t->attempt = t->again;
    t->again = 0;
    struct edge *edges = task_edges(t);
    for (uint32_t i = 0; i < t->inputs_count; i++)
        edges[i].last_use = edges[i].last_again;
}

static bool task_again(struct mr_worker *w, uint32_t task)
{
    struct task *t = &w->tasks[task];
    if (!t->again) return false;
    mr_worker__task_take_again(t);
    t->cancel = t->steal = t->mute = t->timed_out = t->stopping = false;
    if (t->state == TASK_GIVEN)
        mr_worker__task_park(w, task, MR_STR("lost while the task was queued"));
    return true;
}

void mr_worker__task_end(struct mr_worker *w, uint32_t task, bool success)
{
    struct task *t = &w->tasks[task];
    if (!success && task_again(w, task)) return;
    if (t->state == TASK_READY) heap_remove(w, task);
    mr_worker__task_move(w, task, TASK_FREE);
    w->queue_cost_ns -= t->cost_ns;
    w->needs[t->needs].members--;
    struct edge *edges = task_edges(t);
    for (uint32_t i = 0; i < t->inputs_count; i++) {
        struct value *v = &w->values[edges[i].value];
        mr_list_remove(&edges[i].users);
        /* Register has offered the value: if another scheduler answers, it does not know that this
         * was the last use */
        if (edges[i].last_use && success && v->offered)
            v->used = true;
        else if (edges[i].last_use && success)
            v->released = true;
        mr_worker__value_settle(w, edges[i].value);
    }
    uint32_t value = t->value;
    mr_worker__blob_put(&w->pool, &t->edges);
    mr_worker__blob_put(&w->pool, &t->args);
    mr_worker__blob_put(&w->pool, &t->extra);
    mr_list_remove(&t->all);
    t->value = w->tasks_free;
    w->tasks_free = task;
    w->tasks_count--;
    w->values[value].task = NONE;
    mr_worker__value_settle(w, value);
}

static void take_from(struct mr_worker *w, const struct task *t)
{
    struct mr_strand *s = &w->strands[t->strand];
    s->take_from = MR_MIN(s->take_from, t->item);
}

void mr_worker__task_stop(struct mr_worker *w, uint32_t task, bool mute)
{
    struct task *t = &w->tasks[task];
    t->again = 0;
    t->mute = t->mute || mute;
    if (t->state != TASK_GIVEN) {
        mr_worker__task_report(w, task, MR_OUTCOME_CANCELLED);
        mr_worker__task_end(w, task, false);
        return;
    }
    if (t->cancel) return;
    t->cancel = true;
    take_from(w, t);
}

/* Returns the task of a row, if this attempt is here and its end is to be reported; else NONE. */
static uint32_t task_of(struct mr_worker *w, mr_job_id job, uint32_t index, uint32_t attempt)
{
    uint32_t value = mr_worker__value_find(w, job, index);
    if (value == NONE) return NONE;
    uint32_t task = w->values[value].task;
    if (task == NONE || w->tasks[task].mute) return NONE;
    return w->tasks[task].attempt == attempt || w->tasks[task].again == attempt ? task : NONE;
}

/* Answers `unknown` to a cancel or a steal of an attempt. If the worker still has the value that
 * the attempt made, there is no such answer: the completion of the attempt is the answer then. If
 * the scheduler had asked for the value (fetch), `unknown` would mean that the value is gone. */
static void answer_unknown(struct mr_worker *w, mr_job_id job, uint32_t index, uint32_t attempt)
{
    uint32_t value = mr_worker__value_find(w, job, index);
    if (value != NONE && w->values[value].made && w->values[value].attempt == attempt) return;
    mr_worker__answer_add(w, &w->unknown, job, index, attempt);
}

void mr_worker__tasks_cancel(struct mr_worker *w, const struct mr_ws_refs *m)
{
    struct mr_ws_walk walk = {.runs = m->runs};
    for (uint32_t i = 0; i < m->count; i++) {
        mr_job_id job = mr_ws_walk_next(&walk);
        uint32_t attempt = mr_ws_attempt_of(m, i);
        uint32_t task = task_of(w, job, m->index[i], attempt);
        if (task == NONE) {
            answer_unknown(w, job, m->index[i], attempt);
            continue;
        }
        struct task *t = &w->tasks[task];
        if (t->again == attempt) {
            t->again = 0; /* this attempt has not begun: the executor has an earlier attempt */
            mr_worker__out_add(w, job, m->index[i], attempt, MR_OUTCOME_CANCELLED);
            continue;
        }
        uint32_t again = t->again;
        mr_worker__task_stop(w, task, false);
        if (t->state == TASK_GIVEN) t->again = again;
    }
}

void mr_worker__tasks_steal(struct mr_worker *w, const struct mr_ws_refs *m)
{
    struct mr_ws_walk walk = {.runs = m->runs};
    for (uint32_t i = 0; i < m->count; i++) {
        mr_job_id job = mr_ws_walk_next(&walk);
        uint32_t attempt = mr_ws_attempt_of(m, i);
        uint32_t task = task_of(w, job, m->index[i], attempt);
        struct task *t = task == NONE ? NULL : &w->tasks[task];
        if (!t) {
            answer_unknown(w, job, m->index[i], attempt);
        } else if (t->again == attempt) {
            t->again = 0;
            mr_worker__answer_add(w, &w->given, job, m->index[i], attempt);
        } else if (t->state != TASK_GIVEN) {
            mr_worker__answer_add(w, &w->given, job, m->index[i], attempt);
            mr_worker__task_end(w, task, false);
        } else if (t->cancel) {
            mr_worker__answer_add(w, &w->started, job, m->index[i], attempt);
        } else {
            t->steal = true;
            take_from(w, t);
        }
    }
}

/* Handles `leave` of a message from the scheduler: running tasks that shall leave their slots,
 * because they may wait for jobs that they have submitted. */
void mr_worker__tasks_leave(struct mr_worker *w, const struct mr_ws_refs *m)
{
    struct mr_ws_walk walk = {.runs = m->runs};
    for (uint32_t i = 0; i < m->count; i++) {
        mr_job_id job = mr_ws_walk_next(&walk);
        uint32_t attempt = mr_ws_attempt_of(m, i);
        uint32_t task = task_of(w, job, m->index[i], attempt);
        const struct task *t = task == NONE ? NULL : &w->tasks[task];
        if (!t || t->state != TASK_GIVEN || t->attempt != attempt) continue;
        struct mr_strand *s = &w->strands[t->strand];
        if (s->slot >= w->config.slots)
            mr_worker__answer_add(w, &w->left, job, m->index[i], attempt);
        else
            s->leave_at = t->item;
    }
}

/* Returns to the scheduler all tasks that have not started. Strands are cut for that. */
void mr_worker__tasks_return_all(struct mr_worker *w)
{
    MR_LIST_EACH(node, &w->tasks_all)
    {
        struct task *t = MR_LIST_ITEM(node, struct task, all);
        uint32_t task = (uint32_t)(t - w->tasks);
        if (t->again) {
            struct value *v = &w->values[t->value];
            mr_worker__out_add(w, value_job(w, v), v->index, t->again, MR_OUTCOME_RETURNED);
            t->again = 0;
        }
        if (t->state == TASK_GIVEN) {
            take_from(w, t);
        } else {
            mr_worker__task_report(w, task, MR_OUTCOME_RETURNED);
            mr_worker__task_end(w, task, false);
        }
    }
}
