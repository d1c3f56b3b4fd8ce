/* Rings of tasks that run again apart from others. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/lookup.h"

uint32_t mr_sched__ring_pop(struct task_ring *r, uint32_t room); /* `room`: entries of the ring */
void mr_sched__quarantine_add(struct mr_sched *s, uint32_t task);
void mr_sched__memory_retry_add(struct mr_sched *s, uint32_t task);
/* True while an attempt that the worker was told to stop may still run and use memory. */
bool mr_sched__is_stopping(const struct mr_sched *s, const struct worker *w);
/* The mark of an attempt, a small hash. A worker's sum of marks has the attempts that it was told
 * to stop and whose end it has not reported. */
uint32_t mr_sched__stopping_mark(uint64_t job, uint32_t index, uint32_t attempt);
void mr_sched__stopping_add(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sched__stopping_end(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sched__memory_retry_runs(struct mr_sched *s, uint32_t task); /* the task has started */

/* True: in quarantine the task runs with nothing beside it but long-running tasks. That is so if
 * the next crash would blame it, or if it is not long-running. Else it may run beside tasks that
 * are not quarantined. */
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
