/* Finds the cached worker of a task of a loop or a template: the worker that first got the same
 * task, in an earlier round of the loop or an earlier job of the template (placement_table.h). */
#include "services/scheduler/core/place/placement_cache.h"

#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/placement_table.h"
#include "services/scheduler/core/place/place.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"

#define LOOK_MAX 256 /* entries of the cache that one look-up visits */

/* True: one of the job's first LOOK_MAX entries names the worker. */
static bool has_any(const struct job *j, uint32_t worker)
{
    uint32_t n = j->graph->slots_count + (j->shape_1 ? j->graph->nodes_count : 0);
    n = MR_MIN(n, (uint32_t)LOOK_MAX);
    for (uint32_t i = 0; i < n; i++)
        if (j->cache[i].incarnation && j->cache[i].worker == worker) return true;
    return false;
}

/* True: the task would wait on the worker, while another worker is idle and none of the job's first
 * LOOK_MAX cache entries names this idle worker. */
static bool is_better_off(struct mr_sched *s, uint32_t task, uint32_t worker)
{
    const struct worker *w = &s->workers[worker];
    if (w->sent < w->slots) return false;
    uint32_t least = mr_sched__load_least(s);
    if (least == NONE || least == worker || s->workers[least].sent) return false;
    return !has_any(job_of(s, task), least);
}

/* True: the task may be sent before its inputs have values, because the tasks that compute the
 * missing values were sent to workers. The scheduler forwards these values when they arrive. */
static bool may_go_ahead(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    if (mr_sched__is_by_reference(s, task) || !mr_sched__loop_may_go_ahead(s, task)) return false;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + in[i]];
        if (is_done(u)) continue;
        if (!(u->flags & T_SENT) || u->flags & (T_QUARANTINED | T_LONG | T_STEALING)) return false;
    }
    return true;
}

uint32_t mr_sched__cached(struct mr_sched *s, uint32_t task, bool *is_gone)
{
    const struct cached_placement *p = mr_sched__cached_placement(s, task);
    const struct task *t = &s->tasks[task];
    if (!p || !p->incarnation || t->flags & (T_QUARANTINED | T_LONG)) return NONE;
    const struct worker *w = &s->workers[p->worker];
    *is_gone = w->state == W_FREE || w->incarnation != p->incarnation || w->is_retiring;
    if (*is_gone || t->attempt || !mr_sched__has_room_in_cache(s, p->worker, t)) return NONE;
    if (!mr_sched__all_may_run(s, t) && !mr_sched__may_run(s, p->worker, &s->classes[t->class]))
        return NONE;
    bool is_waiting = t->state == MR_TASK_WAITING;
    if (is_waiting && !may_go_ahead(s, task)) return NONE;
    uint32_t n;
    (void)mr_sched__inputs(s, task, &n);
    if (!n && mr_sched__is_crowded(s, w, t)) return NONE;
    if (!is_waiting && is_better_off(s, task, p->worker)) {
        mr_sched__cache_forget(s, task);
        return NONE;
    }
    s->totals.placed_cached++;
    return p->worker;
}
