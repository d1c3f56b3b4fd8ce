/* Quarantine of tasks that may crash their worker. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__quarantine_dispatch(struct mr_sched *s);
void mr_sched__probation_started(struct mr_sched *s, uint32_t task);
void mr_sched__probation_left_slot(struct mr_sched *s, uint32_t task);
/* called when the worker has sent a message */
void mr_sched__probation_heard(struct mr_sched *s, uint32_t worker);
/* Called when the worker is lost, while its tasks are still on its list: quarantines the tasks that
 * may have crashed it. `ran`: the tasks that ran when it crashed; NULL: unknown. */
void mr_sched__quarantine_blame(struct mr_sched *s, uint32_t worker, const struct mr_ws_refs *ran);
/* True: KILLS_MAX crashes are blamed on the task, and it has failed now. False: the task has not
 * changed. */
bool mr_sched__quarantine_fail(struct mr_sched *s, uint32_t task, const char *worker);
