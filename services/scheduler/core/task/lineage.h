/* Values that are lost, and made again. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* does its worker still have the value? */
bool mr_sched__is_still_there(struct mr_sched *s, uint32_t task);
/* makes a released value again */
void mr_sched__task_again(struct mr_sched *s, uint32_t task);
void mr_sched__task_lost(struct mr_sched *s, uint32_t task); /* its value is gone */
