/* Tasks that are to run again apart from others, and the nodes kept free for them. For the core's
 * own files only. */
#pragma once

#include "services/scheduler/core/state/lookup.h"

uint32_t mr_sched__ring_pop(struct task_ring *r, uint32_t room); /* `room`: its length */
void mr_sched__quarantine_add(struct mr_sched *s, uint32_t task);
void mr_sched__memory_retry_add(struct mr_sched *s, uint32_t task);
/* Does an attempt that the worker was told to stop still run, and hold memory? */
bool mr_sched__is_stopping(const struct mr_sched *s, const struct worker *w);
/* An attempt that a worker was told to stop, as a mark, from the request to the report that it
 * ended. Meanwhile its memory is in use. */
uint32_t mr_sched__stopping_mark(uint64_t job, uint32_t index, uint32_t attempt);
void mr_sched__stopping_add(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sched__stopping_end(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sched__memory_retry_runs(struct mr_sched *s, uint32_t task); /* it runs from now on */

/* Does the task run with nothing beside it but long-running tasks? It does if the next crash would
 * blame it, or if it has an end to wait for; others only keep apart from other quarantined tasks.
 */
static inline bool mr_sched__is_probation_alone(const struct task *t)
{
    return !(t->flags & T_LONG) || t->kills + 1 >= KILLS_MAX;
}

static inline void mr_sched__probation_end(struct worker *w)
{
    w->probation = NONE;
    w->probation_at = 0;
    w->is_closed = false;
}
