/* Tasks that fail because of a store. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Called when the task failed because of a store. True: the task is to be tried again. False: the
 * job's grace period or its limit of retries is over. */
bool mr_sched__store_may_return(struct mr_sched *s, uint32_t task);
