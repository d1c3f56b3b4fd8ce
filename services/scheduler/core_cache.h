/* Cached placement: a task of a loop's body goes where it ran in the round before, a task of an
 * instance of a template where it ran in the last one, without a look at data and load. What was
 * right once is right again, for the data lies where it was made: with the same workers. A task
 * whose worker went is placed anew, alone; a worker that has nothing and is nobody's takes what
 * would wait; and what is stolen stays with the thief, for the completion says where it is. */
#pragma once

#include "services/scheduler/core_sched.h"

void mr_sc_cache_new(struct mr_sched *s, uint32_t job);
/* only_first: unless something is noted already. */
void mr_sc_cache_note(struct mr_sched *s, uint32_t task, uint32_t worker, bool only_first);
void mr_sc_cache_forget(struct mr_sched *s, uint32_t task); /* it is to go elsewhere */
/* A worker, or NONE; is_gone: it had one, which went. */
uint32_t mr_sc_cached(struct mr_sched *s, uint32_t task, bool *is_gone);
