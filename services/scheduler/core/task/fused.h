/* Values that a worker consumes where it made them. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* sent with the task; 0: the worker reports the value */
uint32_t mr_sched__fused_uses(const struct mr_sched *s, uint32_t task);
/* its worker reported that */
void mr_sched__fused_consumed(struct mr_sched *s, uint32_t task);
/* something outside the fused run needs the value */
void mr_sched__fused_other(struct mr_sched *s, uint32_t task);
