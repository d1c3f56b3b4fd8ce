/* Queries about running tasks. */
#pragma once

#include "base/buf.h"
#include "base/id.h"
#include "services/scheduler/core/state/types.h"

/* Estimates how many tasks of the job run (running.c). Appends their indexes to `out`, unless `out`
 * is NULL. Other tasks in state RUNNING wait at their workers. */
uint32_t mr_sched_running(const struct mr_sched *s, mr_job_id job, struct mr_buf *out);
/* Finds the task of the job that has run longest, by the workers' last heartbeats, and stores its
 * index in *index and its start in *since. False: no task of the job was reported as running. */
bool mr_sched_longest(const struct mr_sched *s, mr_job_id job, uint32_t *index, mr_time *since);
/* Returns the mean number of the cluster's slots while the job ran, in thousandths; 0: unknown. The
 * number no longer changes when the job has ended. */
uint64_t mr_sched_job_slots(const struct mr_sched *s, mr_job_id job);
/* True: the task runs, by the same estimate as in mr_sched_running. */
bool mr_sched_is_running(const struct mr_sched *s, mr_job_id job, uint32_t index);
