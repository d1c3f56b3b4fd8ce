/* Start times of tasks, and slots that jobs had. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__began(struct mr_sched *s, uint32_t worker, uint32_t task, mr_time at);
void mr_sched__span_lost(
    struct mr_sched *s, uint32_t task); /* the task ran on a worker that is lost */
uint64_t mr_sched__slots_us(
    const struct mr_sched *s); /* integral of connected slots over time, in slots x microseconds */
void mr_sched__worker_is(struct mr_sched *s, struct worker *w, uint32_t state); /* W_CONNECTED … */
void mr_sched__slots_begin(struct mr_sched *s, struct job *j); /* the job starts to run */
void mr_sched__slots_end(struct mr_sched *s, struct job *j);   /* the job has ended */
