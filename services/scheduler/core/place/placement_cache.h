/* Cached placement: a task of a loop's body goes to the worker to which the same task was first
 * sent in an earlier round, a task of a template's instance to that of an earlier instance, without
 * scoring workers. With the same workers the choice is good again, because the data is there. If
 * the worker is gone, only this task is placed anew. An idle worker without tasks of the job gets a
 * task that would wait elsewhere. A task that was stolen, or runs again, is placed like any other.
 * That changes no entry, so stealing does not scatter a chain of tasks (docs/decisions, 040). A
 * preference for workers counts when the entry is made, and not again. (Execution templates:
 * Mashayekhi et al., USENIX ATC 2017.) For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* The cached worker, if the task may go there now; else NONE. *is_gone: that worker is gone. */
uint32_t mr_sched__cached(struct mr_sched *s, uint32_t task, bool *is_gone);
