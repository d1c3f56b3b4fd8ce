/* Questions about what runs now. Loans last until the next step. */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "services/scheduler/core/state/types.h"

/* Tasks of the job that run now: of those in state RUNNING, what workers reported as running, else
 * what they were sent first, as many as they have slots. The others wait at their workers. Their
 * indexes are appended to `out`; NULL: only the count is wanted. */
uint32_t mr_sched_running(const struct mr_sched *s, mr_job_id job, struct mr_buf *out);
/* The task of the job that has run longest by the last heartbeats; false: none has run for a while.
 */
bool mr_sched_longest(const struct mr_sched *s, mr_job_id job, uint32_t *index, mr_time *since);
/* Slots of the cluster while the job ran, in thousandths, on average over that time; 0: unknown. It
 * does not change after the job has ended. */
uint64_t mr_sched_job_slots(const struct mr_sched *s, mr_job_id job);
bool mr_sched_is_running(const struct mr_sched *s, mr_job_id job, uint32_t index);
