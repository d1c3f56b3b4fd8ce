/* Quarantine of tasks that may crash their worker. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__quarantine_dispatch(struct mr_sched *s);
void mr_sched__probation_started(struct mr_sched *s, uint32_t task);
void mr_sched__probation_left_slot(struct mr_sched *s, uint32_t task);
void mr_sched__probation_heard(struct mr_sched *s, uint32_t worker); /* it sent a message */
/* The worker is lost, and its tasks are still on its list. `ran`: the tasks that ran; NULL:
 * unknown. */
void mr_sched__quarantine_blame(struct mr_sched *s, uint32_t worker, const struct mr_ws_refs *ran);
/* True: the task is blamed and has failed. */
bool mr_sched__quarantine_fail(struct mr_sched *s, uint32_t task, const char *worker);
