/* Retries of tasks that had too little memory. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Called when the lease of `worker` has run out. */
void mr_sched__memory_retry_lost(struct mr_sched *s, uint32_t worker);
/* Called when `worker` has registered. */
void mr_sched__memory_retry_joined(struct mr_sched *s, uint32_t worker);
void mr_sched__memory_retry_dispatch(struct mr_sched *s);
/* Called when `worker` had too little memory for the task; `why` has the numbers. Takes the task
 * back. Then the task is tried again or fails. */
void mr_sched__memory_retry_refused(
    struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str why);
void mr_sched__memory_retry_explain(const struct mr_sched *s, uint32_t task, struct mr_buf *out);
