/* Reference counts of values. A task holds a reference to each of its inputs from the time it is
 * planned until it is done. An operator "by reference" puts the ids of its inputs into its result
 * instead of their bytes; then its task keeps the references as long as its own value exists. After
 * a replay of the journal, such a value refers to those inputs that are objects; it contains the
 * bytes of the others. The operator of a loop's exit, for example, passes an
 * argument on. If that argument refers to other values, the task is treated in the same way.
 *
 * A value whose last reference is dropped is released, unless it is a target. Then the task of the
 * value drops the references that it holds, and so on. Tasks that still have to drop references
 * are on s->stack. */
#include "services/scheduler/core/task/refcount.h"

#include "base/assert.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/fused.h"
#include "services/scheduler/core/task/journal.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"

bool mr_sched__is_by_reference(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    return !(t->flags & T_FIXED) && s->ops[s->classes[t->class].op].by_reference;
}

static bool passes(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    return !(t->flags & T_FIXED) && s->ops[s->classes[t->class].op].passes;
}

/* The answer holds only while the inputs have values. */
bool mr_sched__is_referring(const struct mr_sched *s, uint32_t task)
{
    uint32_t n;
    if (mr_sched__is_by_reference(s, task)) return true;
    const struct job *j = job_of(s, task);
    if (!(j->flags & J_REFERS) || !passes(s, task)) return false;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    for (uint32_t i = 0; i < n; i++)
        if (is_done(&s->tasks[j->base + in[i]]) && s->tasks[j->base + in[i]].refs) return true;
    return false;
}

static bool has_references(const struct mr_sched *s, const struct job *j)
{
    for (uint32_t i = 0; i < j->graph->ops_count; i++)
        if (s->ops[j->ops[i]].by_reference) return true;
    return false;
}

/* True: the value of `by` may refer to the value of its input `task`, or to values that the latter
 * refers to. */
bool mr_sched__may_name(const struct mr_sched *s, uint32_t by, uint32_t task)
{
    if (mr_sched__is_by_reference(s, by)) return true;
    if (!passes(s, by)) return false;
    return mr_sched__is_by_reference(s, task) ||
           (passes(s, task) && has_references(s, job_of(s, task)));
}

static bool has_ref(const struct mr_sched *s, uint32_t by, uint32_t refs, uint32_t input)
{
    if (s->tasks[by].is_exit && !mr_sched__loop_has_ref(s, by, input)) return false;
    return refs == REF_ALL || (refs == REF_VALUES && is_done(&s->tasks[input]));
}

uint32_t mr_sched__ref_count(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n, count = mr_sched__shared_key_users(s, task);
    if (s->tasks[task].is_until && mr_sched__loop_holds(s, task)) count++;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++)
        count += has_ref(s, j->base + d[i], s->tasks[j->base + d[i]].refs, task);
    return count;
}

/* Drops one reference to `task`. If it was the last reference, a done task's value is released, and
 * an unfinished task no longer runs. If `task` holds references, it is then pushed on s->stack, so
 * that unref_stack drops them. `failed`: a task that failed or was abandoned held the dropped
 * reference. Then an unfinished `task` that no longer runs counts as abandoned, too. */
static void unref_one(struct mr_sched *s, uint32_t task, uint32_t by_worker, bool failed)
{
    struct task *t = &s->tasks[task];
    bool is_abandoned = failed && is_unfinished(t);
    mr_assert(t->consumers > 0);
    if (--t->consumers || t->flags & (T_TARGET | T_FIXED)) return;
    if (is_done(t)) {
        const struct value *v = &s->values[t->value];
        bool dropped = v->flags & V_LAST && v->worker == by_worker;
        mr_sched__value_release(s, t->value, dropped);
    } else if (is_unfinished(t)) {
        mr_sched__task_unqueue(s, task);
        if (t->fused_use == FUSED_CONSUMED)
            mr_sched__fused_release(s, task);
        else
            mr_sched__task_cancel_sent(s, task);
    } else {
        return;
    }
    mr_sched__task_move(s, task, MR_TASK_RELEASED);
    t->is_abandoned = is_abandoned;
    job_at(s, t)->abandoned += is_abandoned;
    if (t->refs) s->stack[s->stack_count++] = task;
}

/* Drops the references that the tasks on the stack hold, down to `bottom`. */
static void unref_stack(struct mr_sched *s, uint32_t bottom, uint32_t by_worker)
{
    while (s->stack_count > bottom) {
        uint32_t at = s->stack[--s->stack_count], n;
        struct task *t = &s->tasks[at];
        const struct job *j = job_at(s, t);
        const uint32_t *in = mr_graph_inputs(j->graph, at - j->base, &n);
        uint32_t had = t->refs;
        bool failed = t->state == MR_TASK_ERRED || t->is_abandoned;
        t->refs = REF_NONE;
        for (uint32_t i = 0; i < n; i++)
            if (has_ref(s, at, had, j->base + in[i]))
                unref_one(s, j->base + in[i], by_worker, failed);
        by_worker = NONE;
    }
}

void mr_sched__unref(struct mr_sched *s, uint32_t task, uint32_t by_worker)
{
    uint32_t bottom = s->stack_count;
    if (!s->tasks[task].refs) return;
    s->stack[s->stack_count++] = task;
    unref_stack(s, bottom, by_worker);
}

void mr_sched__unref_one(struct mr_sched *s, uint32_t task)
{
    uint32_t bottom = s->stack_count;
    if (!s->tasks[task].consumers) return;
    unref_one(s, task, NONE, false);
    unref_stack(s, bottom, NONE);
}

void mr_sched__ref_all(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    const struct job *j = job_at(s, t);
    uint32_t n, had = t->refs;
    const uint32_t *in = mr_graph_inputs(j->graph, task - j->base, &n);
    if (had == REF_ALL) return;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t input = j->base + in[i];
        if (t->is_exit && !mr_sched__loop_has_ref(s, task, input)) continue;
        if (has_ref(s, task, had, input)) continue;
        s->tasks[input].consumers++;
        if (s->tasks[input].fused_use) mr_sched__fused_other(s, input);
    }
    t->refs = REF_ALL;
}

/* Called when values that refer to the value of `task` are no longer valid. Pushes the done tasks
 * with such values on s->stack. Each pushed task may be computed again, so it takes references to
 * all of its inputs. */
void mr_sched__ref_invalid(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t du = j->base + d[i];
        if (!is_done(&s->tasks[du]) || !has_ref(s, du, s->tasks[du].refs, task)) continue;
        mr_sched__ref_all(s, du);
        s->stack[s->stack_count++] = du;
    }
}

/* True: the value of `by` was replayed from the journal, and `by` holds a reference to its input
 * `task` whenever `task` has a value. */
static bool has_read_back(const struct mr_sched *s, uint32_t by, uint32_t task)
{
    if (s->tasks[by].refs != REF_VALUES) return false;
    return !s->tasks[by].is_exit || mr_sched__loop_has_ref(s, by, task);
}

/* Called when `task` has a value again: tasks whose replayed values refer to this value count as
 * its consumers. */
void mr_sched__ref_again(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    if (!(j->flags & J_REFERS)) return;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++)
        s->tasks[task].consumers += has_read_back(s, j->base + d[i], task);
}

/* True: the replay released the task, because its value's bytes are contained in another value. */
bool mr_sched__is_part(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    if (!(j->flags & J_REFERS) || s->tasks[task].state != MR_TASK_RELEASED) return false;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n; i++)
        if (has_read_back(s, j->base + d[i], task)) return true;
    return false;
}

bool mr_sched__is_broken(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *in = mr_graph_inputs(j->graph, task - j->base, &n);
    if (!is_done(&s->tasks[task]) || s->tasks[task].refs != REF_ALL) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!is_done(&s->tasks[j->base + in[i]]) && has_ref(s, task, REF_ALL, j->base + in[i]))
            return true;
    return false;
}

/* Called after recovery for a task whose value a worker still had: the value is lost if a value
 * that it refers to is gone. Else the journal gets it, if the journal keeps values of this task. */
void mr_sched__ref_settle(struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    if (!is_done(t) || t->refs != REF_ALL) return;
    if (mr_sched__is_broken(s, task)) {
        mr_sched__task_lost(s, task);
    } else if (t->flags & (T_TARGET | T_IMPURE)) {
        mr_sched__journal_parts(s, task);
        mr_sched__journal_part(s, task);
    }
}
