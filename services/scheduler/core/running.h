/* Questions about what runs now. Loans last until the next step. */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "services/scheduler/core/state/types.h"

/* Of the job's tasks that count as RUNNING, those that run now, their indexes appended to `out`
 * (NULL: only how many): what workers said they run, else what they were sent first, as many as
 * they have slots. The others wait at their workers. */
uint32_t mr_sched_running(const struct mr_sched *s, mr_job_id job, struct mr_buf *out);
/* Of those, what has run longest as workers last said; false: none has run for a while. */
bool mr_sched_longest(const struct mr_sched *s, mr_job_id job, uint32_t *index, mr_time *since);
/* Thousandths of slots that the cluster had while the job ran, on average over that time; 0: not
 * known. It does not change once the job has ended. */
uint64_t mr_sched_job_slots(const struct mr_sched *s, mr_job_id job);
bool mr_sched_is_running(const struct mr_sched *s, mr_job_id job, uint32_t index);
