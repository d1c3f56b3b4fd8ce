/* A turn of dispatch. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sc_dispatch(struct mr_sched *s);
void mr_sc_steal(struct mr_sched *s);
