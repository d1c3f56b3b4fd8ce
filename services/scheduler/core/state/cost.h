/* Estimates of the run times of tasks, and of the store memory for large results. Private to
 * services/scheduler/core. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint64_t mr_sched__estimate(const struct mr_sched *s, uint32_t op);
/* `bytes` not 0: records for the store that the task will make a result of about this size.
 * `bytes` 0: removes this record, for example because the task has ended. */
void mr_sched__store_coming(struct mr_sched *s, uint32_t task, uint64_t bytes);
