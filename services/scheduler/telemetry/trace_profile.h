/* Answers Profile and Account. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/telemetry/trace_reader.h"

/* Answers the call with the account, or fails the call. `graph`: the job's graph; NULL: the account
 * is of all jobs, or of a namespace. */
void mr_trace_profile_answer(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_graph *graph, const struct mr_trace_answer *answer);
