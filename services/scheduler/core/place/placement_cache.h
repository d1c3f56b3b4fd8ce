/* Cached placement: a task of a loop's body goes where it ran in the round before, a task of a
 * template's instance where it ran in the last one, without a look at data and load. What was right
 * once is right again with the same workers, for the data lies where it was made. A task whose
 * worker went is placed anew, alone; a worker that has nothing and is nobody's takes what would
 * wait. What is stolen, or runs again, is placed like any other task, and its next round is back
 * where it was: else a chain would be torn apart one theft at a time. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* A worker, or NONE; is_gone: it had one, which went. */
uint32_t mr_sched__cached(struct mr_sched *s, uint32_t task, bool *is_gone);
