/* Fused runs. A task whose value is only read by tasks of its own job is sent with the number of
 * those uses. A worker may run the task and all its uses in one go, as a fused chain or diamond, as
 * compilers fuse operators. Then the worker never reports the value: it reports that the task was
 * consumed, and the results of the uses. Until these results arrive, the task counts as running on
 * the worker; the completion of its last consumer releases the task (task/refcount.c). If a
 * consumer is handed back, or something else comes to need the value, the task runs again. */
#include "services/scheduler/core/task/fused.h"

#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/task.h"

/* limit of uses in a fused run; the worker reports the value of a task with more uses */
#define USES_MAX 64u

uint32_t mr_sched__fused_uses(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_at(s, t);
    uint32_t n, uses = 0, exits = 0, index = task - j->base;
    /* the worker reports the value of `until` in any case: the core has to read it */
    bool of_loop = t->is_until;
    if (t->flags & (T_TARGET | T_IMPURE | T_HAS_SHARERS | T_LONG | T_QUARANTINED)) return 0;
    if (j->flags & J_UNFUSED) return 0;
    const uint32_t *d = mr_graph_dependents(j->graph, index, &n);
    if (!n || n > USES_MAX) return 0;
    const struct mr_task_options *o = mr_graph_options(j->graph, index);
    if (o && o->persist) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + d[i]];
        if (!is_unfinished(u)) continue;
        /* the exit of a loop (the task that takes its result) may need the value of this round
         * later */
        if (u->is_exit) {
            exits += mr_sched__loop_has_ref(s, j->base + d[i], task);
            of_loop = true;
            continue;
        }
        if (mr_sched__may_name(s, j->base + d[i], task)) return 0;
        uses++;
    }
    if (!uses || uses + exits != t->consumers) return 0;
    return of_loop ? uses | MR_USES_OF_LOOP : uses;
}

void mr_sched__fused_consumed(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    bool is_own = t->fused_use == FUSED_COUNTED;
    t->fused_use = FUSED_CONSUMED;
    t->kills = 0;
    t->flags = (uint16_t)((t->flags & ~(T_QUARANTINED | T_WAS_NEAR_CRASH)) | T_STARTED);
    if (!is_own) mr_sched__fused_other(s, task);
}

void mr_sched__fused_other(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    if (t->fused_use != FUSED_CONSUMED) {
        t->fused_use = FUSED_REPORTED;
        return;
    }
    mr_sched__task_unsend(s, task);
    if (is_unfinished(t)) mr_sched__task_requeue(s, task);
}
