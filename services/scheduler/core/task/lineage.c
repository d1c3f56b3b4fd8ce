/* Lineage: a value that is lost and still needed is computed again from its inputs; lost inputs are
 * computed first. Spark recomputes partitions of an RDD in this way (Zaharia et al., "Resilient
 * Distributed Datasets", NSDI 2012). A value that refers to a lost value is lost with it. The tasks
 * that a walk has still to visit are pushed on the stack of the state (s->stack). */
#include "services/scheduler/core/task/lineage.h"

#include "base/assert.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"

#include <stdio.h>

/* Makes the dependents of a lost value wait for it again. A dependent that was sent is taken back
 * if its result would refer to the lost value. A quarantined dependent is taken back, too: it
 * cannot start, and the worker that is kept free for it may be needed to compute the value. */
static void dependents_wait(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t du = j->base + d[i];
        struct task *u = &s->tasks[du];
        if (!is_unfinished(u) || !mr_sched__is_edge(s, task, du)) continue;
        bool is_useless = mr_sched__may_name(s, du, task) || u->flags & T_QUARANTINED;
        if (u->flags & T_SENT && is_useless) mr_sched__task_cancel_sent(s, du);
        if (u->state != MR_TASK_WAITING) {
            mr_sched__task_unqueue(s, du);
            mr_sched__task_move(s, du, MR_TASK_WAITING);
            u->waiting = u->unsent = 0;
        }
        u->waiting++;
        u->unsent++;
    }
}

/* V_LAST: the worker that made the value was told that it may drop the value. If another copy
 * exists, this worker no longer counts as the value's keeper. If the worker is connected, it is
 * told to release the value. */
bool mr_sched__is_still_there(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    if (t->value == LITERAL) return true;
    struct value *v = &s->values[t->value];
    if (!(v->flags & V_LAST)) return true;
    if (v->kind != V_AWAY) {
        if (v->kind == V_OBJECT && !(v->flags & V_HELD)) return false;
        if (s->workers[v->worker].state == W_CONNECTED)
            mr_sched__refs_add(&mr_sched__batch(s, v->worker)->release, job_of(s, task)->id,
                index_of(s, task), v->attempt);
        mr_sched__value_unkeep(s, t->value);
        return true;
    }
    return false;
}

static void value_gone(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct job *j = job_at(s, t);
    if (t->flags & T_TARGET && j->state <= MR_JOB_RUNNING) j->targets_left++;
    /* the node is an alias: it only refers to a key of another job. From now on it waits like a
     * task */
    if (t->flags & T_FIXED) {
        t->flags = (uint16_t)(t->flags & ~T_FIXED);
        j->counts[MR_TASK_DONE]++;
    }
    mr_sched__value_release(s, t->value, false);
    mr_sched__task_move(s, task, MR_TASK_RELEASED);
    dependents_wait(s, task);
}

static void fail_without(struct mr_sched *s, uint32_t task, uint32_t input)
{
    struct mr_str key = mr_graph_key(job_of(s, input)->graph, index_of(s, input));
    char text[MR_ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text,
        "its value was lost, and of its inputs \"%.*s\" cannot be made again",
        (int)MR_MIN(key.n, (size_t)200), key.p);
    struct failure st = mr_sched__failure_make(s, task, 15, mr_str(text), NULL);
    mr_sched__task_fail(s, task, &st);
    mr_sched__failure_fini(&st);
}

/* Plans a released task again: counts the inputs that it waits for, takes references to all inputs,
 * and pushes on the stack those inputs that were released. */
static void make_again(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct job *j = job_at(s, t);
    uint32_t n, never = NONE;
    if (mr_sched__is_alias(s, task)) {
        mr_sched__shared_key_wait(s, task);
        return;
    }
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    t->waiting = t->unsent = t->is_exit && !mr_sched__loop_is_decided(s, task);
    mr_sched__ref_all(s, task);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = j->base + in[i];
        struct task *u = &s->tasks[x];
        if (is_done(u) && !mr_sched__is_still_there(s, x)) value_gone(s, x);
        if (is_done(u)) continue;
        t->waiting++;
        if (!(u->flags & T_SENT)) t->unsent++;
        if (u->state == MR_TASK_RELEASED) s->stack[s->stack_count++] = x;
        if (u->state == MR_TASK_ERRED || u->state == MR_TASK_CANCELLED) never = x;
    }
    mr_sched__task_move(s, task, MR_TASK_WAITING);
    t->worker = NONE;
    j->recomputed++;
    s->totals.recomputed++;
    if (never != NONE)
        fail_without(s, task, never);
    else if (!t->waiting)
        mr_sched__task_inputs_done(s, task, task);
}

/* True: something still needs the task's value. False: an earlier step of the walk has failed the
 * job, or all tasks that needed the value. */
static bool is_needed(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    return !(job_of(s, task)->flags & (J_STOPPED | J_FORGETTING)) &&
           (t->consumers || t->flags & T_TARGET);
}

void mr_sched__task_again(struct mr_sched *s, uint32_t task)
{
    uint32_t bottom = s->stack_count;
    s->stack[s->stack_count++] = task;
    while (s->stack_count > bottom) {
        uint32_t u = s->stack[--s->stack_count];
        if (s->tasks[u].state != MR_TASK_RELEASED) continue;
        if (is_needed(s, u))
            make_again(s, u);
        else
            mr_sched__shared_key_failed(s, u);
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
        struct failure st = {.task = u, .code = 15, .message = text};
        mr_sched__task_fail(s, u, &st);
    }
}

/* Pushes on the stack the done tasks that share the value of `task`. They lose the value, too, if
 * it is an object or refers to a lost value. */
static void push_sharers(struct mr_sched *s, uint32_t task)
{
    for (uint32_t t = s->keys.head[task]; t; t = s->keys.next[t - 1])
        if (is_done(&s->tasks[t - 1])) s->stack[s->stack_count++] = t - 1;
}

static bool is_wanted(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_at(s, t);
    if (j->flags & (J_STOPPED | J_FORGETTING)) return false;
    return t->consumers || (t->flags & T_TARGET && j->state <= MR_JOB_RUNNING);
}

/* Called when an object of `task` is lost. Returns the task that loses its value first. Usually
 * this is `task`. But `task` may be an alias: a node that refers to a key of another job. Its
 * source is the task that has that key. If both have the same object in the same store, the source
 * loses its value first, and then the alias with it. */
static uint32_t whose(const struct mr_sched *s, uint32_t task)
{
    uint32_t source = mr_sched__shared_key_source(s, task);
    if (source == NONE || !mr_sched__is_object(s, task) || !mr_sched__is_object(s, source))
        return task;
    const struct value *a = &s->values[s->tasks[task].value];
    const struct value *b = &s->values[s->tasks[source].value];
    bool is_same = mr_object_id_eq(a->object, b->object) && a->store == b->store;
    return is_same && !(s->tasks[source].flags & T_FIXED) ? source : task;
}

/* Called for a lost value that is not computed again, because the job has ended. Tells clients that
 * wait for the value's bytes that the value is gone. */
static void tell_gone(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    if (!(s->tasks[task].flags & T_TARGET) || !(j->flags & J_STOPPED) || j->flags & J_FORGETTING)
        return;
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_TARGET_FAILED);
    n->job = (mr_job_id){j->id};
    n->index = index_of(s, task);
    n->code = MR_ESTATE;
    mr_sched__note_text(s, n, "its value was lost when its worker was, and its job has ended");
}

/* Performs the consequences of a lost value, in this order:
 *   1. A stored object cannot be computed again: its consumers fail.
 *   2. If the task shares the lost object with the task of another job that made the object, the
 *      walk begins with that other task, because it is the one to be computed again.
 *   3. A value that refers to a lost value is lost, too. The walk collects all such values before
 *      any is computed again. Each of their tasks releases its value and makes its dependents wait,
 *      but keeps its references, so that no input is released before the next attempt.
 *   4. The walk then goes backwards, so that a value comes before those that refer to it. A value
 *      that is needed is planned again. For any other value the task drops its references, and
 *      clients that wait for the value are told. */
void mr_sched__task_lost(struct mr_sched *s, uint32_t task)
{
    mr_assert(is_done(&s->tasks[task]));
    if (s->tasks[task].flags & T_FIXED && !mr_sched__is_alias(s, task)) {
        fail_fixed(s, task);
        return;
    }
    task = whose(s, task);
    uint32_t bottom = s->stack_count;
    s->stack[s->stack_count++] = task;
    if (s->tasks[task].refs) mr_sched__ref_all(s, task);
    for (uint32_t i = bottom; i < s->stack_count; i++) {
        uint32_t at = s->stack[i];
        if (!is_done(&s->tasks[at])) continue; /* the task was on the stack twice */
        mr_sched__ref_invalid(s, at);
        if (i > bottom || mr_sched__is_object(s, at)) push_sharers(s, at);
        value_gone(s, at);
    }
    for (uint32_t i = s->stack_count; i-- > bottom;) {
        uint32_t at = s->stack[i];
        /* nested walks use the stack above this entry */
        s->stack_count = i + 1;
        if (s->tasks[at].state != MR_TASK_RELEASED) continue;
        if (is_wanted(s, at)) {
            mr_sched__task_again(s, at);
        } else {
            mr_sched__unref(s, at, NONE);
            mr_sched__shared_key_failed(s, at);
            tell_gone(s, at);
        }
    }
    s->stack_count = bottom;
}
