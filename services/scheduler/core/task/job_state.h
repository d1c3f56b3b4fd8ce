/* States of jobs. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__job_started(struct mr_sched *s, uint32_t job);
void mr_sched__job_end(struct mr_sched *s, uint32_t job, enum mr_job_state state);
void mr_sched__job_target_final(struct mr_sched *s, uint32_t job);
void mr_sched__job_forget(struct mr_sched *s, uint32_t job);
