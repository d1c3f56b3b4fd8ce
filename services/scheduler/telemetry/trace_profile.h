/* Answers Profile. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/telemetry/trace_reader.h"

/* Answers the call with the account of the job, or fails it. */
void mr_trace_profile_answer(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, const struct mr_trace_answer *answer);
