/* Queries about running tasks. */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "services/scheduler/core/state/types.h"

/* Counts the tasks of the job that run, an estimate (running.c). Appends their indexes to `out`,
 * unless that is NULL. Other tasks in state RUNNING wait at their workers. */
uint32_t mr_sched_running(const struct mr_sched *s, mr_job_id job, struct mr_buf *out);
/* The task of the job that has run longest, by the last heartbeats; false: none is reported. */
bool mr_sched_longest(const struct mr_sched *s, mr_job_id job, uint32_t *index, mr_time *since);
/* The mean number of the cluster's slots while the job ran, in thousandths; 0: unknown. It does not
 * change after the job has ended. */
uint64_t mr_sched_job_slots(const struct mr_sched *s, mr_job_id job);
bool mr_sched_is_running(const struct mr_sched *s, mr_job_id job, uint32_t index);
