/* Lineage: a value that is gone and still needed is made again, with whatever of its inputs is gone
 * too. */
#include "services/scheduler/core_do.h"

#include <stdio.h>

/* The dependents of a node that had a value and has it no more. */
static void dependents_wait(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t du = j->base + d[i];
        struct task *u = &s->tasks[du];
        if (!is_unfinished(u)) continue;
        u->waiting++;
        u->unsent++;
        if (u->state == MR_TASK_WAITING) continue;
        mr_sc_task_unqueue(s, du);
        mr_sc_task_move(s, du, MR_TASK_WAITING);
    }
}

/* A consumer came back, but the worker may have dropped the value after what was its last use. */
static bool is_still_there(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    if (t->value == LITERAL) return true;
    struct value *v = &s->values[t->value];
    if (!(v->flags & V_LAST)) return true;
    if (v->kind != V_AWAY) {
        if (v->kind == V_OBJECT && !(v->flags & V_HELD)) return false;
        if (s->workers[v->worker].state == W_CONNECTED)
            mr_sc_refs_add(&mr_sc_batch(s, v->worker)->release, job_of(s, task)->id,
                index_of(s, task), v->attempt);
        mr_sc_value_unkeep(s, t->value);
        return true;
    }
    return false;
}

static void value_gone(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct job *j = &s->jobs[t->job];
    if (t->flags & T_TARGET && j->state <= MR_JOB_RUNNING) j->targets_left++;
    mr_sc_value_release(s, t->value, false);
    mr_sc_task_move(s, task, MR_TASK_RELEASED);
    dependents_wait(s, task);
}

/* A released node is to be made again: counts what it waits for, claims its inputs, and puts those
 * that are gone on the stack. */
static void make_again(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct job *j = &s->jobs[t->job];
    uint32_t n;
    const uint32_t *in = mr_graph_inputs(j->graph, task - j->base, &n);
    t->waiting = t->unsent = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = j->base + in[i];
        struct task *u = &s->tasks[x];
        if (is_done(u) && !is_still_there(s, x)) value_gone(s, x);
        u->consumers++;
        if (is_done(u)) continue;
        t->waiting++;
        if (!(u->flags & T_SENT)) t->unsent++;
        if (u->state == MR_TASK_RELEASED) s->stack[s->stack_count++] = x;
    }
    mr_sc_task_move(s, task, MR_TASK_WAITING);
    t->worker = NONE;
    j->recomputed++;
    s->recomputed++;
    if (!t->waiting) mr_sc_task_inputs_done(s, task);
}

void mr_sc_task_again(struct mr_sched *s, uint32_t task)
{
    uint32_t bottom = s->stack_count;
    s->stack[s->stack_count++] = task;
    while (s->stack_count > bottom) {
        uint32_t u = s->stack[--s->stack_count];
        if (s->tasks[u].state == MR_TASK_RELEASED) make_again(s, u);
    }
}

static void fail_fixed(struct mr_sched *s, uint32_t task)
{
    struct job *j = job_of(s, task);
    struct mr_str key = mr_graph_key(j->graph, task - j->base);
    char text[MR_ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text, "the stored object of key \"%.*s\" is gone",
        (int)MR_MIN(key.n, (size_t)200), key.p);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n && !(j->flags & J_STOPPED); i++) {
        uint32_t u = j->base + d[i];
        if (!is_unfinished(&s->tasks[u])) continue;
        struct story st = {.task = u, .code = 15, .message = text};
        mr_sc_task_fail(s, u, &st);
    }
}

void mr_sc_task_lost(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    const struct job *j = &s->jobs[t->job];
    mr_assert(is_done(t));
    if (t->flags & T_FIXED) {
        fail_fixed(s, task);
        return;
    }
    bool is_wanted = t->consumers || (t->flags & T_TARGET && j->state <= MR_JOB_RUNNING);
    value_gone(s, task);
    if (is_wanted && !(j->flags & J_STOPPED)) mr_sc_task_again(s, task);
}
