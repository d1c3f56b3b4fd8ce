/* The end of recovery after a restart. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__recover_tick(struct mr_sched *s);
