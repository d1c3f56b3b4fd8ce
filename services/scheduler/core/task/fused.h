/* Values that a worker consumes in a fused run. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Returns the number of uses that is sent with the task; 0: the worker reports the value. */
uint32_t mr_sched__fused_uses(const struct mr_sched *s, uint32_t task);
/* Called when the task's worker has reported the task as consumed. */
void mr_sched__fused_consumed(struct mr_sched *s, uint32_t task);
/* Called when something outside the fused run needs the task's value. */
void mr_sched__fused_other(struct mr_sched *s, uint32_t task);
