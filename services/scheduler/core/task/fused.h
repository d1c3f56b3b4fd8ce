/* Values that a worker consumes in a fused run. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Returns the number of uses that is sent with the task; 0: the worker reports the value. */
uint32_t mr_sched__fused_uses(const struct mr_sched *s, uint32_t task);
/* Marks the task as consumed, because its worker has reported so. */
void mr_sched__fused_consumed(struct mr_sched *s, uint32_t task);
/* Makes sure that the task's value exists outside the fused run, where it is needed: a consumed
 * task runs again. */
void mr_sched__fused_other(struct mr_sched *s, uint32_t task);
