/* Two rings of ready tasks that are retried under special rules: quarantined tasks, and tasks that
 * twice had too little memory. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/lookup.h"

uint32_t mr_sched__ring_pop(struct task_ring *r, uint32_t room); /* `room`: entries of the ring */
void mr_sched__quarantine_add(struct mr_sched *s, uint32_t task);
void mr_sched__memory_retry_add(struct mr_sched *s, uint32_t task);
/* True while an attempt that the worker was told to stop may still run and use memory. */
bool mr_sched__is_stopping(const struct mr_sched *s, const struct worker *w);
/* Returns the mark of an attempt: a hash. The member `stopping` of a worker is the sum of the marks
 * of those attempts that the worker was told to stop and whose end it has not reported. */
uint32_t mr_sched__stopping_mark(uint64_t job, uint32_t index, uint32_t attempt);
void mr_sched__stopping_add(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sched__stopping_end(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sched__memory_retry_runs(struct mr_sched *s, uint32_t task); /* called when `task` starts */

/* Tells which other tasks may run on the worker of the quarantined task `t`. True: only
 * long-running ones, because `t` is not long-running, or because one more crash would make `t`
 * fail. False: all tasks that are not quarantined. */
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
