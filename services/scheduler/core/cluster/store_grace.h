/* Tasks that fail because of a store. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__store_may_return(struct mr_sched *s, uint32_t task);
