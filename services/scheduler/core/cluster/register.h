/* Registration of workers. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__worker_register(struct mr_sched *s, const struct mr_sched_register *r);
