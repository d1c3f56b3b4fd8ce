/* Tasks that are to run again apart from others, and the nodes kept free for them. For the core's
 * own files only. */
#pragma once

#include "services/scheduler/core/state/lookup.h"

uint32_t mr_sched__ring_pop(struct task_ring *r, uint32_t room); /* `room`: its length */
void mr_sched__quarantine_add(struct mr_sched *s, uint32_t task);
void mr_sched__memory_retry_add(struct mr_sched *s, uint32_t task);
/* Was the worker told to stop what may still be in its memory? */
bool mr_sched__is_stopping(const struct mr_sched *s, const struct worker *w);
/* A worker was told to stop an attempt; it said that one which was not its any more has ended. In
 * between, what it has in memory is there. */
uint32_t mr_sched__stopping_mark(uint64_t job, uint32_t index, uint32_t attempt);
void mr_sched__stopping_add(struct mr_sched *s, uint32_t worker, uint32_t mark);
void mr_sched__memory_retry_runs(struct mr_sched *s, uint32_t task); /* it is running from now on */

/* A suspect that would be convicted, or that has an end to wait for, is tried with nothing beside
 * it but what has run long; another one only apart from other suspects. */
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
