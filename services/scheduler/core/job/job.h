/* Requests about jobs. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__job_submit(struct mr_sched *s, const struct mr_sched_event *ev);
/* Plans the job that the last step accepted, if there is one. */
void mr_sched__job_plan(struct mr_sched *s);
void mr_sched__job_reclaim(struct mr_sched *s, uint32_t tasks_max);
void mr_sched__job_request(struct mr_sched *s, const struct mr_sched_event *ev);
void mr_sched__job_want(struct mr_sched *s, const struct mr_sched_event *ev);
void mr_sched__job_deadlines(struct mr_sched *s);
void mr_sched__job_keep(struct mr_sched *s);
