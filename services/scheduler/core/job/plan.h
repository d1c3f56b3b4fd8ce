/* Makes a job of a graph, and plans which tasks have to run. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint32_t mr_sched__job_add(
    struct mr_sched *s, uint64_t id, struct mr_graph **graph, struct mr_error *e);
int mr_sched__resolve(struct mr_sched *s, uint32_t job, const struct mr_sched_resolved *r,
    uint32_t n, struct mr_error *e);
void mr_sched__plan(struct mr_sched *s, uint32_t job);
/* Frees a job whose tasks are reclaimed. */
void mr_sched__job_drop(struct mr_sched *s, uint32_t job);
