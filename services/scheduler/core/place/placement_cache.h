/* Cached placement: a task of a loop's body goes where it ran in the round before, a task of a
 * template's instance where it ran in the last one, without a look at data and load. What was right
 * once is right again with the same workers, for the data lies where it was made. A task whose
 * worker went is placed anew, alone; a worker that has nothing and is nobody's takes what would
 * wait. What is stolen, or runs again, is placed like any other task, and its next round is back
 * where it was: else a chain would be torn apart one theft at a time. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sc_cache_new(struct mr_sched *s, uint32_t job);
/* It is an instance of a template: its tasks run where those of the last one did. */
void mr_sc_cache_share(struct mr_sched *s, uint32_t job, uint64_t template);
void mr_sc_cache_drop(struct mr_sched *s, struct job *j);
void mr_sc_cache_fini(struct mr_sched *s);
/* place/place.c: does memory want no more root tasks like this there? */
bool mr_sc_is_crowded(struct mr_sched *s, const struct worker *w, const struct task *t);
/* It was sent there: noted, unless something is already. */
void mr_sc_cache_note(struct mr_sched *s, uint32_t task, uint32_t worker);
void mr_sc_cache_forget(struct mr_sched *s, uint32_t task); /* it is to go elsewhere */
/* A worker, or NONE; is_gone: it had one, which went. */
uint32_t mr_sc_cached(struct mr_sched *s, uint32_t task, bool *is_gone);
