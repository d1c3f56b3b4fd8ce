/* A task's entry names its cached worker: the worker to which the task was first sent. The same
 * task is usually sent there again in the next round of its loop, and in the next job of the same
 * template. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__cache_new(struct mr_sched *s, uint32_t job);
/* Makes the job use the table that all jobs of `template` share. Does nothing if `template` is 0 or
 * the job is too large. */
void mr_sched__cache_share(struct mr_sched *s, uint32_t job, uint64_t template);
void mr_sched__cache_drop(struct placements *p, struct job *j);
void mr_sched__cache_fini(struct placements *p);
/* Returns the task's entry; NULL: the task has none. */
struct cached_placement *mr_sched__cached_placement(const struct mr_sched *s, uint32_t task);
/* Records where a task was sent, unless its entry is set. */
void mr_sched__cache_note(struct mr_sched *s, uint32_t task, uint32_t worker);
/* Clears the task's entry, so that the next worker to which the task is sent is recorded. */
void mr_sched__cache_forget(struct mr_sched *s, uint32_t task);
