/* Values that a worker consumes in a fused run: a group of tasks that the worker runs in one go.
 * For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Returns how many unfinished tasks use the task's value. The scheduler sends this number with the
 * task (fused.c). The number has the flag MR_USES_OF_LOOP if a loop may need the value, too. 0: the
 * worker must report the value. */
uint32_t mr_sched__fused_uses(const struct mr_sched *s, uint32_t task);
/* Marks the task as consumed, because its worker has reported so. */
void mr_sched__fused_consumed(struct mr_sched *s, uint32_t task);
/* Called when something outside the fused run needs the task's value. If the value was consumed,
 * the task is queued again. */
void mr_sched__fused_other(struct mr_sched *s, uint32_t task);
