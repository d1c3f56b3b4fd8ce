/* Reference counts of values. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__is_by_reference(const struct mr_sched *s, uint32_t task);
/* True: the task's value refers to other values. */
bool mr_sched__is_referring(const struct mr_sched *s, uint32_t task);
bool mr_sched__may_name(const struct mr_sched *s, uint32_t by, uint32_t task);
/* Counts the references to the task from scratch. */
uint32_t mr_sched__ref_count(const struct mr_sched *s, uint32_t task);
/* Makes the task drop the references that it holds to its inputs. `by_worker`: the worker that
 * completed the task and has dropped those inputs whose last user was the task. NONE: no worker has
 * dropped inputs. */
void mr_sched__unref(struct mr_sched *s, uint32_t task, uint32_t by_worker);
/* Drops one reference to the task. */
void mr_sched__unref_one(struct mr_sched *s, uint32_t task);
/* Makes the task take references to all of its inputs. */
void mr_sched__ref_all(struct mr_sched *s, uint32_t task);
/* Pushes on s->stack the done tasks whose values refer to the value of `task`. */
void mr_sched__ref_invalid(struct mr_sched *s, uint32_t task);
void mr_sched__ref_again(struct mr_sched *s, uint32_t task);
bool mr_sched__is_part(const struct mr_sched *s, uint32_t task);
/* True: the task's value refers to a value that is gone. */
bool mr_sched__is_broken(const struct mr_sched *s, uint32_t task);
void mr_sched__ref_settle(struct mr_sched *s, uint32_t task);
