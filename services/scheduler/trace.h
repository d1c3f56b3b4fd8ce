/* What tasks did when: a compact span for every attempt, bounded a job and in all, for Timeline and
 * Profile. */
#pragma once

#include "services/scheduler/shell.h"

struct mr_trace *mr_trace_new(void);
void mr_trace_free(struct mr_trace **t);
void mr_trace_add(struct mr_shell *sh); /* takes fx.spans */
void mr_trace_forget(struct mr_shell *sh, mr_job_id job);

Millrace__V1__TimelineResponse *mr_trace_timeline(struct mr_shell *sh,
    const struct mr_sched_job_info *info, uint64_t after_wall_ns, uint32_t spans_max);
Millrace__V1__ProfileResponse *mr_trace_profile(
    struct mr_shell *sh, const struct mr_sched_job_info *info);
/* The last span of one task; false: none is kept. Times of the scheduler's clock. */
bool mr_trace_last(
    const struct mr_shell *sh, mr_job_id job, uint32_t index, struct mr_sched_span *out);
