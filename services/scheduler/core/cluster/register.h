/* Registration of workers. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Registers a worker, or refuses it. `session`: number of the worker's gRPC stream, as in struct
 * mr_sched_event. */
void mr_sched__worker_register(
    struct mr_sched *s, uint64_t session, const struct mr_ws_register *r);
