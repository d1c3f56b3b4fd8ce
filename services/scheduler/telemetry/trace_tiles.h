/* Answers calls of Jobs.Tiles. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/telemetry/trace_reader.h"

/* Answers the call with the picture of a timeline, or fails the call. */
void mr_trace_tiles_answer(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_answer *answer);
