#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "services/scheduler/core/state/types.h"

/* Appends a sentence that says why a task ran, runs or waits, and the reasons, one on each line. */
bool mr_sched_explain(
    const struct mr_sched *s, mr_job_id job, uint32_t index, struct mr_buf *lines);
