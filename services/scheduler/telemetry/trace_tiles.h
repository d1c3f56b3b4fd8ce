/* Answers calls of Jobs.Tiles. A large picture takes 10 to 20 ms to pack, so the thread that drew
 * the picture packs it, and the core thread only sends the bytes. */
#pragma once

#include "services/scheduler/base/context.h"
#include "services/scheduler/telemetry/trace_reader.h"

/* Appends the packed TilesResponse of a picture. Any thread may call this function. */
void mr_trace_tiles_pack(const struct mr_job_tiles_picture *picture, struct mr_buf *out);
/* Answers the call with answer->packed, or fails the call. For the core thread. */
void mr_trace_tiles_answer(struct mr_rpc_call *call, struct mr_trace_answer *answer);
