/* Sends ready tasks to workers, and moves tasks from loaded to idle workers. For the core's own
 * files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__dispatch(struct mr_sched *s);
