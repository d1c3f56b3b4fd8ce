/* Completions that workers report. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__completed(struct mr_sched *s, uint32_t worker, const struct mr_ws_completed *c,
    struct mr_sched_refs_out *adopt);
