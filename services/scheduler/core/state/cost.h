/* What a task is expected to cost. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint64_t mr_sched__estimate(const struct mr_sched *s, uint32_t op);
/* A task that makes a large result of about `bytes` runs, its inputs are there; 0: no more. */
void mr_sched__store_coming(struct mr_sched *s, uint32_t task, uint64_t bytes);
