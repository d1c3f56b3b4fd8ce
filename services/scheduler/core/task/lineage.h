/* Values that are lost, and made again. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__is_still_there(struct mr_sched *s, uint32_t task); /* its value, where it was kept */
void mr_sched__task_again(struct mr_sched *s, uint32_t task); /* of a released one: make it again */
void mr_sched__task_lost(struct mr_sched *s, uint32_t task);  /* its value is gone */
