/* A turn of dispatch. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__dispatch(struct mr_sched *s);
