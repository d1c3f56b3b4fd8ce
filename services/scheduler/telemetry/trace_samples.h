/* Writes blocks of samples (store/meta/trace/samples.h) to the trace, and answers calls of
 * Cluster.Samples. */
#pragma once

#include "services/scheduler/base/context.h"
#include "store/meta/trace/log.h"

struct mr_trace_answer;

/* Used on the writer's thread (trace_writer.h). The newest 256 segments are kept. A segment ends
 * when it has 256 KiB. */
struct mr_trace_samples {
    struct mr_trace_log *log; /* borrowed */
    mr_job_id segment;        /* 0: there is none yet */
    size_t segment_bytes;
};

/* Writes a block (mr_samples_begin). `wall_ns`: the present time. */
void mr_trace_samples_write(struct mr_trace_samples *t, struct mr_buf *block, uint64_t wall_ns);

/* Answers a call of Cluster.Samples. Used on the core thread. */
void mr_trace_samples_answer(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_answer *answer);
