/* Cached placement: a task of a loop's body goes to the worker of its last round, a task of a
 * template's instance to the worker of the last instance, without scoring workers. With the same
 * workers the choice is good again, because the data is there. If the worker is gone, only this
 * task is placed anew. An idle worker without tasks of the job gets a task that would wait
 * elsewhere. A task that was stolen, or runs again, is placed like any other; its next round
 * returns to the cached worker, so that stealing does not scatter a chain of tasks. (Execution
 * templates: Mashayekhi et al., USENIX ATC 2017.) For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* A worker, or NONE. *is_gone: the cached worker is gone. */
uint32_t mr_sched__cached(struct mr_sched *s, uint32_t task, bool *is_gone);
