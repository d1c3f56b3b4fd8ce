/* Lost values, and how they are computed again. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* True: the value of the task, which is done, still exists. False: its worker was told to drop the
 * value after the last use, and may have dropped the only copy. */
bool mr_sched__is_still_there(struct mr_sched *s, uint32_t task);
/* Plans a released task again, because its value is needed again. */
void mr_sched__task_again(struct mr_sched *s, uint32_t task);
/* Performs the consequences of the loss of the task's value. */
void mr_sched__task_lost(struct mr_sched *s, uint32_t task);
