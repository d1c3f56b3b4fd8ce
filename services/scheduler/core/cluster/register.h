/* Registration of workers. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* `session`: the shell's number of the stream. */
void mr_sched__worker_register(
    struct mr_sched *s, uint64_t session, const struct mr_ws_register *r);
