/* Moves tasks along their states, with the consequences: counts down the inputs of dependents,
 * fails the dependents of a failure. Walks over graphs use a stack in the arena. A fused run is a
 * group of tasks that a worker runs in one go, without reporting the values in between (fused.c).
 * Here a node is "covered" if it has a value or was sent. When all inputs of a task are covered,
 * the task may be sent before it is ready.
 *
 * Six files of this folder call each other in a circle: task, lineage, refcount, shared_key, fused
 * and loop. The states are the reason. A task that is done drops references; the last reference
 * releases a value; a released value that is needed again is computed again, which changes states
 * of tasks, in this job and in those that share its keys. A walk visits only tasks in certain
 * states and moves them out of these states, so each walk ends. The tasks still to visit are on the
 * arena's stack; nothing recurses. */
#include "services/scheduler/core/task/task.h"

#include "base/assert.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/placement_class.h"
#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/cost.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/job_state.h"
#include "services/scheduler/core/task/journal.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/value.h"
#include "services/scheduler/core/task/value_delivery.h"

/* a task is not queued before it is ready if more than this many of its inputs have no value */
#define AHEAD_INPUTS_MAX 256
#define AHEAD_LOOKS_MAX 8 /* the same limit, when an input of the task gets a value */

#define S(x) (1u << MR_TASK_##x)
#define ENDS (S(DONE) | S(RELEASED) | S(ERRED) | S(CANCELLED))
static const unsigned allowed[MR_TASK_STATES] = {
    [MR_TASK_NONE] = S(WAITING) | ENDS,
    [MR_TASK_WAITING] = S(READY) | S(RUNNING) | ENDS,
    [MR_TASK_READY] = S(WAITING) | S(RUNNING) | ENDS,
    [MR_TASK_RUNNING] = S(WAITING) | S(READY) | ENDS,
    [MR_TASK_DONE] = S(WAITING) | S(RELEASED),
    [MR_TASK_RELEASED] = S(WAITING),
    [MR_TASK_ERRED] = S(WAITING) | S(RELEASED),
    [MR_TASK_CANCELLED] = S(WAITING) | S(RELEASED),
};

static void runs(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    uint64_t bytes = s->ops[s->classes[t->class].op].large_bytes;
    if (bytes && !(t->flags & T_LONG)) mr_sched__store_coming(s, task, bytes);
    if (s->memory_retry.reserved_store) mr_sched__memory_retry_runs(s, task);
}

static void count_by_op(struct job *j, uint32_t task, bool was_ended, bool is_ended)
{
    uint32_t index = task - j->base;
    if (was_ended == is_ended || j->graph->kind[index] != MR_NODE_TASK) return;
    j->op_tasks[j->graph->op[index]].ended += is_ended ? 1 : UINT32_MAX;
}

void mr_sched__task_move(struct mr_sched *s, uint32_t task, enum mr_task_state to)
{
    struct task *t = &s->tasks[task];
    struct job *j = job_at(s, t);
    mr_assert(allowed[t->state] & (1u << to));
    if (t->state != MR_TASK_NONE) j->counts[t->state]--;
    j->counts[to]++;
    count_by_op(j, task, t->state > MR_TASK_RUNNING, to > MR_TASK_RUNNING);
    j->flags |= J_DIRTY;
    if (t->state == MR_TASK_WAITING && to > MR_TASK_RUNNING) t->ready_us = 0;
    t->state = to & 15;
    if (t->is_coming) mr_sched__store_coming(s, task, 0);
    j->abandoned -= t->is_abandoned;
    t->is_abandoned = 0;
    if (to == MR_TASK_RUNNING) runs(s, task);
    bool is_over = to == MR_TASK_RELEASED || to == MR_TASK_ERRED || to == MR_TASK_CANCELLED;
    if (is_over && t->flags & T_SHARED) mr_sched__shared_key_leave(s, task);
    if (to == MR_TASK_ERRED || to == MR_TASK_CANCELLED) mr_sched__shared_key_failed(s, task);
}

void mr_sched__task_unqueue(struct mr_sched *s, uint32_t task)
{
    if (s->tasks[task].flags & T_QUEUED) mr_sched__queue_drop(s, task);
    if (s->tasks[task].flags & T_PARKED) mr_sched__unpark(s, task);
}

/* Queues a ready task: in the ring of quarantined tasks, in the ring of memory retries, or in the
 * ready queue. */
static void make_ready(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    mr_assert(t->state == MR_TASK_READY && !(t->flags & T_SENT));
    if (t->flags & T_QUARANTINED) {
        mr_sched__task_unqueue(s, task);
        mr_sched__quarantine_add(s, task);
    } else if (t->oom_retries > 1 && !(t->flags & T_LONG)) {
        mr_sched__task_unqueue(s, task);
        mr_sched__memory_retry_add(s, task);
    } else if (!(t->flags & (T_QUEUED | T_PARKED))) {
        mr_sched__queue_put(s, task);
    }
}

/* True: the task is long-running by its operator or options. (A task that gave its slot back to
 * wait for a job that it submitted also has T_LONG, as long as it is on its worker.) */
static bool is_long(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    const struct mr_task_options *o = mr_graph_options(j->graph, task - j->base);
    return (o && o->long_running) || s->ops[s->classes[s->tasks[task].class].op].long_running;
}

/* Takes a sent task off its worker's list and out of the worker's load. */
static void unlink_sent(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    struct worker *w = &s->workers[t->worker];
    if (t->prev == NONE)
        w->sent_head = t->next;
    else
        s->tasks[t->prev].next = t->next;
    if (t->next == NONE)
        w->sent_tail = t->prev;
    else
        s->tasks[t->next].prev = t->prev;
    t->prev = t->next = NONE;
    w->sent--;
    w->queue_ns -= t->estimate;
    w->unknown -= (t->flags & T_UNKNOWN) != 0;
    w->long_sent -= (t->flags & T_LONG) != 0;
    w->stealing -= (t->flags & T_STEALING) != 0;
    if (t->is_coming) mr_sched__store_coming(s, task, 0);
    if (t->class >= s->config.ops_max)
        for (uint32_t r = 0; r < s->class_list.resources_count; r++)
            w->facts->taken[r] -= s->classes[t->class].need[r];
    if (w->probation == task) mr_sched__probation_end(w);
    if (s->memory_retry.reserved_task == task) s->memory_retry.reserved_task = NONE;
    t->flags = (uint16_t)(t->flags & ~(T_SENT | T_STEALING | T_UNKNOWN | T_STARTED));
    if (t->flags & T_LONG && !is_long(s, task)) t->flags &= (uint16_t)~T_LONG;
    t->fused_use = FUSED_REPORTED;
    mr_sched__load_changed(s, t->worker, false);
    s->has_work = true; /* the worker has room for another task */
}

/* Adds the task to `unsent` of each waiting task that depends on it. `unsent` is the number of
 * inputs without a value whose task was not sent to a worker. */
static void dependents_uncover(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct task *u = &s->tasks[j->base + d[i]];
        if (u->state == MR_TASK_WAITING && mr_sched__is_edge(s, task, j->base + d[i])) u->unsent++;
    }
}

/* Takes the task off its worker. From now on the task does not count there as the last use of its
 * inputs. Pushes on the stack the inputs that the task consumed in a fused run. */
static void unsend_one(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    mr_assert(t->flags & T_SENT);
    uint32_t n, worker = t->worker;
    const struct job *j = job_at(s, t);
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    unlink_sent(s, task);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + in[i]];
        if (u->fused_use == FUSED_CONSUMED) s->stack[s->stack_count++] = j->base + in[i];
        if (u->value < LITERAL && s->values[u->value].worker == worker)
            s->values[u->value].flags &= (uint8_t)~V_LAST;
    }
    dependents_uncover(s, task);
    if (t->state == MR_TASK_RUNNING) mr_sched__task_move(s, task, MR_TASK_READY);
    t->worker = NONE;
}

/* Called for a task that ran and was the last use of some inputs: its worker has dropped them.
 * Pushes on the stack those inputs of which there is no other copy. */
static void drop_inputs(struct mr_sched *s, uint32_t task)
{
    uint32_t n, worker = s->tasks[task].worker;
    const struct job *j = job_of(s, task);
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = j->base + in[i];
        const struct task *u = &s->tasks[x];
        if (!is_done(u) || u->value >= LITERAL || s->values[u->value].worker != worker) continue;
        if (!mr_sched__is_still_there(s, x)) s->stack[s->stack_count++] = x;
    }
}

/* Counts the task as recomputed: its value was consumed in a fused run and is needed again. */
static void recomputed(struct mr_sched *s, uint32_t task)
{
    struct job *j = job_of(s, task);
    if (j->flags & J_STOPPED || !is_unfinished(&s->tasks[task])) return;
    j->recomputed++;
    s->totals.recomputed++;
}

/* Takes the task off its worker. Values that the task consumed in a fused run have to be computed
 * again, so the tasks that made them leave the worker, too. These tasks may have been the last
 * users of other values, which the worker then dropped. If no copy is left of such a value, it is
 * treated as lost, after all these tasks have left the worker. This order is necessary, because the
 * walk over lost values looks at which tasks are sent. */
void mr_sched__task_unsend(struct mr_sched *s, uint32_t task)
{
    uint32_t bottom = s->stack_count;
    bool has_run = s->tasks[task].fused_use == FUSED_CONSUMED;
    if (has_run) drop_inputs(s, task);
    unsend_one(s, task);
    if (has_run) recomputed(s, task);
    /* visits the tasks whose values `task` consumed */
    for (uint32_t i = bottom; i < s->stack_count; i++) {
        uint32_t u = s->stack[i];
        if (s->tasks[u].fused_use != FUSED_CONSUMED) continue;
        drop_inputs(s, u);
        unsend_one(s, u);
        recomputed(s, u);
        mr_sched__task_requeue(s, u);
    }
    uint32_t top = s->stack_count;
    for (uint32_t i = bottom; i < top; i++)
        if (is_done(&s->tasks[s->stack[i]])) mr_sched__task_lost(s, s->stack[i]);
    s->stack_count = bottom;
}

void mr_sched__fused_release(struct mr_sched *s, uint32_t task)
{
    unlink_sent(s, task);
    s->tasks[task].worker = NONE;
}

void mr_sched__task_cancel_sent(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    if (!(t->flags & T_SENT)) return;
    if (s->workers[t->worker].state == W_CONNECTED) {
        uint64_t job = job_of(s, task)->id;
        uint32_t index = index_of(s, task);
        mr_sched__refs_add(&mr_sched__batch_more(s, t->worker)->cancel, job, index, t->attempt);
        /* a consumed task was reported, so the worker no longer has it */
        if (t->fused_use != FUSED_CONSUMED)
            mr_sched__stopping_add(s, t->worker, mr_sched__stopping_mark(job, index, t->attempt));
    }
    mr_sched__task_unsend(s, task);
}

static void queue_ahead(struct mr_sched *s, uint32_t task, uint32_t waiting_max)
{
    struct task *t = &s->tasks[task];
    if (t->state == MR_TASK_WAITING && !t->unsent && t->waiting <= waiting_max &&
        !(t->flags & (T_SENT | T_QUEUED | T_PARKED | T_QUARANTINED | T_SHARED)))
        mr_sched__queue_put(s, task);
}

void mr_sched__task_requeue(struct mr_sched *s, uint32_t task)
{
    if (job_of(s, task)->flags & J_STOPPED) return;
    if (s->tasks[task].state == MR_TASK_READY)
        make_ready(s, task);
    else
        queue_ahead(s, task, AHEAD_INPUTS_MAX);
}

/* Called when all inputs of a waiting task have values: the task runs if it was sent, else it
 * becomes ready. `last`: the input whose value came last, or the task itself if it waited for none.
 */
void mr_sched__task_inputs_done(struct mr_sched *s, uint32_t task, uint32_t last)
{
    struct task *t = &s->tasks[task];
    t->ready_us = ready_us(s) & READY_US_MASK;
    t->last_input = index_of(s, last) & (MR_TASKS_MAX - 1);
    t->was_held = false;
    mr_assert(t->state == MR_TASK_WAITING);
    mr_sched__task_move(s, task, t->flags & T_SENT ? MR_TASK_RUNNING : MR_TASK_READY);
    if (!(t->flags & T_SENT)) make_ready(s, task);
}

static void dependents_done(struct mr_sched *s, uint32_t task, bool was_covered)
{
    const struct job *j = job_of(s, task);
    const struct task *t = &s->tasks[task];
    uint32_t n, keeper = t->value < LITERAL ? s->values[t->value].worker : NONE;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t du = j->base + d[i];
        struct task *u = &s->tasks[du];
        if (!is_unfinished(u) || !mr_sched__is_edge(s, task, du)) continue;
        mr_assert(u->state == MR_TASK_WAITING && u->waiting > 0);
        mr_assert(was_covered || u->unsent > 0);
        u->waiting--;
        if (!was_covered) u->unsent--;
        if (u->flags & T_SENT && u->worker != keeper) mr_sched__send_value(s, task, u->worker);
        if (!u->waiting)
            mr_sched__task_inputs_done(s, du, task);
        else
            queue_ahead(s, du, AHEAD_LOOKS_MAX);
    }
}

/* Called when a task gets a new value during recovery. Values of other tasks may still refer to the
 * object that this task had before the restart. That object is gone, so those values are lost. */
static void outdate(struct mr_sched *s, uint32_t task)
{
    uint32_t bottom = s->stack_count;
    if (!s->is_recovering || s->is_adopting || !mr_sched__is_object(s, task)) return;
    mr_sched__ref_invalid(s, task);
    uint32_t top = s->stack_count;
    for (uint32_t i = bottom; i < top; i++)
        if (is_done(&s->tasks[s->stack[i]])) mr_sched__task_lost(s, s->stack[i]);
    s->stack_count = bottom;
}

/* Performs the consequences of a new value, in this order:
 *   1. The task leaves the queue or its worker's list: a task that is done is on neither.
 *   2. The task is done. The next steps test for that.
 *   3. The task drops the references to its inputs, unless its value refers to them. The worker
 *      that ran the task has dropped the inputs for which this was the last use, so it gets no
 *      message to release them.
 *   4. Values that were replayed from the journal and refer to this value count as its consumers,
 *      before step 9 tests whether it has any.
 *   5. If the task is the `until` of a loop, its value may end the loop. Then tasks of later rounds
 *      that nothing needs any more are released, before step 6 could make them ready.
 *   6. Each dependent has one missing input less. If the dependent was sent to a worker that does
 *      not have the value, this worker gets the value. A dependent that was not sent becomes ready
 *      if it misses no input any more.
 *   7. The journal gets the value, before step 9 may write the end of the job.
 *   8. Tasks of other jobs that share the key take the value, before step 9 may release it.
 *   9. The job has one target less to wait for, or the value is released because nothing uses it.
 *      Either may change what the earlier steps read.
 *   10. The loop of step 5 goes on, or the tasks that take its result may run. This may release
 *       rounds and this very value. */
void mr_sched__task_done(struct mr_sched *s, uint32_t task, uint32_t by_worker)
{
    struct task *t = &s->tasks[task];
    bool was_covered = t->flags & T_SENT;
    mr_sched__task_unqueue(s, task);
    if (was_covered) unlink_sent(s, task);
    mr_sched__task_move(s, task, MR_TASK_DONE);
    /* a task that shares another job's value takes no references: the other job's task has them */
    bool refers = mr_sched__is_referring(s, task) && !(t->flags & T_SHARED);
    if (refers)
        job_at(s, t)->flags |= J_REFERS;
    else
        mr_sched__unref(s, task, by_worker);
    mr_sched__ref_again(s, task);
    bool is_until = t->is_until, goes_on = is_until && mr_sched__loop_found(s, task);
    dependents_done(s, task, was_covered);
    if (t->flags & (T_TARGET | T_IMPURE)) mr_sched__journal_value(s, task);
    if (t->flags & T_HAS_SHARERS) mr_sched__shared_key_done(s, task, s->passing);
    if (job_at(s, t)->flags & J_REFERS) outdate(s, task);
    if (t->flags & T_TARGET) {
        mr_sched__job_target_final(s, job_no(s, t));
        /* is_done is tested again, since a task of another job that shares the value may have
         * released it */
    } else if (is_done(t) && !t->consumers && !(t->flags & T_FIXED)) {
        mr_sched__value_release(s, t->value, false);
        mr_sched__task_move(s, task, MR_TASK_RELEASED);
        mr_sched__unref(s, task, NONE);
    }
    if (is_until) mr_sched__loop_go_on(s, task, goes_on);
}

static void fail_one(struct mr_sched *s, uint32_t task, uint32_t cause)
{
    struct task *t = &s->tasks[task];
    mr_sched__task_unqueue(s, task);
    mr_sched__task_cancel_sent(s, task);
    mr_sched__task_move(s, task, MR_TASK_ERRED);
    t->cause = cause;
    mr_sched__unref(s, task, NONE);
    if (!(t->flags & T_TARGET)) return;
    struct job *j = job_at(s, t);
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_TARGET_FAILED);
    n->job = (mr_job_id){j->id};
    n->index = task - j->base;
    j->targets_failed++;
}

/* Fails every task that needs `task`. */
static void fail_dependents(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t bottom = s->stack_count;
    s->stack[s->stack_count++] = task;
    while (s->stack_count > bottom) {
        uint32_t n, at = s->stack[--s->stack_count];
        const uint32_t *d = mr_graph_dependents(j->graph, at - j->base, &n);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t u = j->base + d[i];
            if (!is_unfinished(&s->tasks[u])) continue;
            if (s->tasks[u].is_exit && !mr_sched__loop_has_ref(s, u, at)) continue;
            fail_one(s, u, task);
            job_of(s, u)->fallen++;
            s->stack[s->stack_count++] = u;
        }
    }
}

/* Performs the consequences of a failure, in this order:
 *   1. The reason is kept and written to the journal, while the task's attempt is still known.
 *   2. The first reason of a job becomes the job's, before the job may end in step 4.
 *   3. The task fails, then every unfinished task that needs it. Each of them drops its references,
 *      so that inputs which nothing else needs are abandoned.
 *   4. Targets that failed are counted, or the job ends at once. This comes last: the end of a job
 *      stops its tasks and starts to reclaim them. */
void mr_sched__task_fail(struct mr_sched *s, uint32_t task, const struct failure *failure)
{
    struct task *t = &s->tasks[task];
    uint32_t job = job_no(s, t);
    struct job *j = &s->jobs[job];
    mr_assert(is_unfinished(t));
    bool is_late =
        /* another task failed first, and this task is not reclaimed yet */
        j->flags & J_STOPPED;
    if (is_late && (j->state != MR_JOB_FAILED || j->flags & J_FORGETTING)) return;
    mr_sched__failure_put(s, task, failure);
    mr_sched__journal_erred(s, task, failure);
    if (!j->has_failure) {
        mr_sched__failure_copy(&j->failure, failure);
        j->failure.task = task;
        j->has_failure = true;
    }
    uint32_t failed = j->targets_failed;
    fail_one(s, task, task);
    fail_dependents(s, task);
    if (!(j->flags & J_CONTINUE)) {
        mr_sched__job_end(s, job, MR_JOB_FAILED);
        return;
    }
    for (failed = j->targets_failed - failed; failed && j->state < MR_JOB_DONE; failed--)
        mr_sched__job_target_final(s, job);
}
