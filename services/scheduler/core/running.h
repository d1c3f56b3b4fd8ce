/* Queries about running tasks, and about what the slots do. */
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
struct mr_sched_op_tasks { /* the tasks of a job with one operator */
    struct mr_str op;      /* lent until the job is forgotten */
    uint32_t tasks, ended; /* ended: whatever their result */
};
/* Describes operator number `op` (from 0) of the job's graph. False: there is no such job or
 * operator. */
bool mr_sched_job_op(
    const struct mr_sched *s, mr_job_id job, uint32_t op, struct mr_sched_op_tasks *out);

enum mr_sched_idle { /* why a slot is probably idle, as classes of lib/account/class.h */
    MR_SCHED_IDLE_NO_WORK,
    MR_SCHED_IDLE_DEPENDENCY,
    MR_SCHED_IDLE_IMBALANCE,
    MR_SCHED_IDLE_DECIDE,
    MR_SCHED_IDLE_MEMORY,
    MR_SCHED_IDLE_RESTRICTED,
    MR_SCHED_IDLE_JOURNAL,
    MR_SCHED_IDLE_STOPPED,
    MR_SCHED_IDLES,
};

/* What the slots of all workers do. The sums of `busy` and `idle` together are `slots`. */
struct mr_sched_doing {
    uint32_t slots;
    uint32_t busy;                 /* slots that run tasks */
    uint32_t idle[MR_SCHED_IDLES]; /* slots by enum mr_sched_idle */
};

/* Estimates what the slots do. Adds to by_op[n] the busy slots of operator number n; the array has
 * mr_sched_ops_count + 1 entries, and entry 0 is for slots whose task was not looked at. Looks at a
 * bounded number of tasks. */
void mr_sched_doing(const struct mr_sched *s, uint32_t *by_op, struct mr_sched_doing *out);
/* Returns how many slots of the worker run tasks, by the same estimate. */
uint32_t mr_sched_worker_busy(const struct mr_sched *s, uint32_t slot);
/* True: the task runs, by the same estimate as in mr_sched_running. */
bool mr_sched_is_running(const struct mr_sched *s, mr_job_id job, uint32_t index);
