/* Suspects: tasks that ran when a worker died. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sc_quarantine_dispatch(struct mr_sched *s);
void mr_sc_probation_started(struct mr_sched *s, uint32_t task);
void mr_sc_probation_left_slot(struct mr_sched *s, uint32_t task);
void mr_sc_probation_heard(struct mr_sched *s, uint32_t worker); /* it lives */
/* This worker is lost; its tasks are still its own. `ran`: what it ran, NULL if nobody knows. */
void mr_sc_quarantine_blame(struct mr_sched *s, uint32_t worker, const struct mr_sched_refs *ran);
bool mr_sc_quarantine_fail(
    struct mr_sched *s, uint32_t task, const char *worker); /* did it fail? */
