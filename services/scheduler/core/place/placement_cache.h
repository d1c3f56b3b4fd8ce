/* Cached placement of the tasks of loops and templates: a task goes to the worker that first got
 * the same task, in an earlier round of the loop or an earlier job of the template. The task's
 * cache entry names this worker. No workers are scored. While the workers are the same, this worker
 * stays a good choice, because it has the data. If the worker is gone, only this task is placed
 * anew. A task is also placed anew if it would wait at its worker while a worker without tasks of
 * the job is idle.
 *
 * A task that was stolen, or runs again, is placed without the cache. While the worker in the
 * task's entry is there, the entry does not change. So stealing does not scatter a chain of tasks
 * (docs/decisions, 040). A preference for workers counts when the entry is made, and not again.
 * (Execution templates: Mashayekhi et al., USENIX ATC 2017.) For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Returns the cached worker, if the task may go there now; else NONE. Sets *is_gone if the cached
 * worker is gone or retires. */
uint32_t mr_sched__cached(struct mr_sched *s, uint32_t task, bool *is_gone);
