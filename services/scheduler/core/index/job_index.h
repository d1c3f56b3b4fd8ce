/* Jobs by id, by request id and by age. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint32_t mr_sched__job_find(const struct mr_sched *s, uint64_t id);              /* slot, or NONE */
uint32_t mr_sched__find(const struct mr_sched *s, uint64_t job, uint32_t index); /* task, or NONE */
uint32_t mr_sched__request_find(const struct mr_sched *s, struct mr_str id);
void mr_sched__job_enlist(struct mr_sched *s, uint32_t job);
void mr_sched__job_unlist(struct mr_sched *s, uint32_t job);
/* Returns the wall-clock time when the job with this id was forgotten; 0: the job was not
 * forgotten, or FORGOTTEN_MAX jobs were forgotten after it. */
uint64_t mr_sched__job_forgotten(const struct mr_sched *s, mr_job_id job);
