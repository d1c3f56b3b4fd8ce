/* Cached placement: a task of a loop's body goes where it ran in the round before, a task of a
 * template's instance where it ran in the last instance, without a look at data and load. With the
 * same workers the same choice is good again, because the data lies where it was made. A task whose
 * worker is gone is placed anew, alone. An idle worker without any task of the job takes a task
 * that would wait. A task that was stolen, or runs again, is placed like any other, and its next
 * round returns to the noted worker: otherwise thefts would tear a chain apart. For the core's own
 * files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* A worker, or NONE. is_gone: the noted worker is gone. */
uint32_t mr_sched__cached(struct mr_sched *s, uint32_t task, bool *is_gone);
