/* Start times of tasks, and the number of slots in the cluster while a job runs. For the core's own
 * files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__began(struct mr_sched *s, uint32_t worker, uint32_t task, mr_time at);
/* Sets when the span's task became ready, and which input it waited for last. */
void mr_sched__span_ready(const struct mr_sched *s, const struct task *t, struct mr_sched_span *p);
/* Emits the span of a task that ran on a worker that is lost. */
void mr_sched__span_lost(struct mr_sched *s, uint32_t task);
/* Returns the scheduler's clock minus the worker's. */
int64_t mr_sched__clock_offset(const struct mr_sched *s, uint32_t worker);
/* Returns the integral of connected slots over time, in slots x microseconds. */
uint64_t mr_sched__slots_us(const struct mr_sched *s);
/* Sets the state of the worker (W_CONNECTED …). If the worker begins or ceases to be connected, its
 * slots are added to the connected slots or subtracted from them. */
void mr_sched__worker_is(struct mr_sched *s, struct worker *w, uint32_t state);
/* Begins to count the slots that the cluster has while the job runs. */
void mr_sched__slots_begin(struct mr_sched *s, struct job *j);
/* Ends the count of slots and adds it to the job's sums. */
void mr_sched__slots_end(struct mr_sched *s, struct job *j);
