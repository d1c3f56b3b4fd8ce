/* The cached workers of the tasks of loops and templates. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__cache_new(struct mr_sched *s, uint32_t job);
/* The job is an instance of a template: it shares the table of the other instances. */
void mr_sched__cache_share(struct mr_sched *s, uint32_t job, uint64_t template);
void mr_sched__cache_drop(struct placements *p, struct job *j);
void mr_sched__cache_fini(struct placements *p);
/* The entry of a task; NULL: it has none. */
struct cached_placement *mr_sched__cached_placement(const struct mr_sched *s, uint32_t task);
/* Records where a task was sent, unless its entry is set. */
void mr_sched__cache_note(struct mr_sched *s, uint32_t task, uint32_t worker);
/* Clears the entry: the next worker is recorded. */
void mr_sched__cache_forget(struct mr_sched *s, uint32_t task);
