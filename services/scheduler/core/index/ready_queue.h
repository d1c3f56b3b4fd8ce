/* The queue of ready tasks. It is sorted by the job's priority, then by the job's virtual time,
 * then by the task's place in the job. ready_queue.c explains "virtual time" and "place". For the
 * core's own files only. */
#pragma once

#include "services/scheduler/core/state/lookup.h"

void mr_sched__queue_job_changed(struct mr_sched *s, uint32_t job);
/* Charges a job for the estimated run time of its task `task`, which was sent to a worker. */
void mr_sched__queue_charge(struct mr_sched *s, uint32_t task);
void mr_sched__queue_put(struct mr_sched *s, uint32_t task);
void mr_sched__queue_drop(struct mr_sched *s, uint32_t task);
uint32_t mr_sched__queue_job(const struct mr_sched *s); /* the job to serve first, or NONE */
uint32_t mr_sched__queue_first(const struct mr_sched *s, uint32_t job);
void mr_sched__queue_check(const struct mr_sched *s);

/* True: job `x` is served before job `y`. */
static inline bool mr_sched__job_before(const struct job *x, const struct job *y)
{
    if (x->priority != y->priority) return x->priority > y->priority;
    if (x->virtual_ns != y->virtual_ns) return x->virtual_ns < y->virtual_ns;
    return x->serial < y->serial;
}

static inline bool mr_sched__task_before(const struct mr_sched *s, uint32_t a, uint32_t b)
{
    const struct job *x = job_of(s, a), *y = job_of(s, b);
    return x != y ? mr_sched__job_before(x, y) : place_of(s, a) < place_of(s, b);
}
