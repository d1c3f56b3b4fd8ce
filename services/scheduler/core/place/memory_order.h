/* Consumers of values that fill memory go next. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Called when `task` has got a value of `bytes` bytes on `worker`: decides whether the other
 * consumers of its inputs go next. */
void mr_sched__memory_order_look(
    struct mr_sched *s, uint32_t task, uint32_t worker, uint64_t bytes);
void mr_sched__memory_order_dispatch(struct mr_sched *s, uint32_t *left);
