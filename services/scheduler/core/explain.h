#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "services/scheduler/core/state/types.h"

/* Appends to `lines` a sentence that says why the task ran, runs, waits or will never run, then the
 * reasons, one on each line. False: there is no such task, and nothing is appended. */
bool mr_sched_explain(
    const struct mr_sched *s, mr_job_id job, uint32_t index, struct mr_buf *lines);
