/* Lost values, which are computed again. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* True: its worker still has the value. */
bool mr_sched__is_still_there(struct mr_sched *s, uint32_t task);
/* Plans a released task, whose value is needed again. */
void mr_sched__task_again(struct mr_sched *s, uint32_t task);
void mr_sched__task_lost(struct mr_sched *s, uint32_t task); /* its value is lost */
