/* Messages of workers. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__worker_message(
    struct mr_sched *s, uint32_t slot, uint64_t incarnation, const struct mr_ws_up *m);
