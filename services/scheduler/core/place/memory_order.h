/* Consumers of values that fill memory go next. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Called when `worker` has completed `task` with a result of `bytes` bytes. Decides for each input
 * of `task` whether the input's other consumers go next. */
void mr_sched__memory_order_look(
    struct mr_sched *s, uint32_t task, uint32_t worker, uint64_t bytes);
void mr_sched__memory_order_dispatch(struct mr_sched *s, uint32_t *left);
