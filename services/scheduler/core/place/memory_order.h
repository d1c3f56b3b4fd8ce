/* Values in memory that are being used up. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* `task` has just got a value of `bytes` from `worker`: are those that take the like of the same
 * input to go next? */
void mr_sched__memory_order_look(
    struct mr_sched *s, uint32_t task, uint32_t worker, uint64_t bytes);
void mr_sched__memory_order_dispatch(struct mr_sched *s, uint32_t *left);
