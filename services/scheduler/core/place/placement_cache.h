/* Cached placement: a task goes to the worker to which the same task was first sent in an earlier
 * round of its loop, or in an earlier job of its template. No workers are scored. As long as the
 * workers are the same the choice is good again, because the data is there. If the worker is gone,
 * only this task is placed anew. An idle worker without tasks of the job gets a task that would
 * wait elsewhere. A task that was stolen, or runs again, is placed like any other. This changes no
 * entry, so stealing does not scatter a chain of tasks (docs/decisions, 040). A preference for
 * workers counts when the entry is made, and not again. (Execution templates: Mashayekhi et al.,
 * USENIX ATC 2017.) For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Returns the cached worker, if the task may go there now; else NONE. Sets *is_gone if the cached
 * worker is gone or retires. */
uint32_t mr_sched__cached(struct mr_sched *s, uint32_t task, bool *is_gone);
