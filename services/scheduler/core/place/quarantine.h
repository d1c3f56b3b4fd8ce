/* Suspects: tasks that ran when a worker died. What the core's other files call of
 * place/quarantine.c. */
#pragma once

#include "services/scheduler/core/task/internal.h"

/* A suspect that would be convicted, or that has an end to wait for, is tried with nothing beside
 * it but what has run long; another one only apart from other suspects. */
static inline bool mr_sc_is_tried_alone(const struct task *t)
{
    return !(t->flags & T_LONG) || t->kills + 1 >= KILLS_MAX;
}

static inline void mr_sc_trial_end(struct worker *w)
{
    w->trial = NONE;
    w->trial_at = 0;
    w->is_closed = false;
}

void mr_sc_suspect_add(struct mr_sched *s, uint32_t task);
void mr_sc_trial_dispatch(struct mr_sched *s);
/* This worker is lost; its tasks are still its own. `ran`: what it ran, NULL if nobody knows. */
void mr_sc_trial_blame(struct mr_sched *s, uint32_t worker, const struct mr_sched_refs *ran);
bool mr_sc_trial_convict(struct mr_sched *s, uint32_t task, const char *worker); /* did it fail? */
void mr_sc_trial_started(struct mr_sched *s, uint32_t task);
void mr_sc_trial_heard(struct mr_sched *s, uint32_t worker); /* it lives */
void mr_sc_trial_left_slot(struct mr_sched *s, uint32_t task);
