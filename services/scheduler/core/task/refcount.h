/* Reference counts of values: which task keeps whose value. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__is_by_reference(const struct mr_sched *s, uint32_t task);
/* does its value refer to others? */
bool mr_sched__is_referring(const struct mr_sched *s, uint32_t task);
bool mr_sched__may_name(const struct mr_sched *s, uint32_t by, uint32_t task);
uint32_t mr_sched__ref_count(const struct mr_sched *s, uint32_t task); /* by counting them */
/* The task drops its references. by_worker: it was completed there, and that worker has dropped the
 * inputs whose last use was marked. */
void mr_sched__unref(struct mr_sched *s, uint32_t task, uint32_t by_worker);
void mr_sched__unref_one(struct mr_sched *s, uint32_t task); /* one reference to the task */
void mr_sched__ref_all(struct mr_sched *s, uint32_t task);   /* to all inputs */
/* the tasks are on the stack then */
void mr_sched__ref_invalid(struct mr_sched *s, uint32_t task);
void mr_sched__ref_again(struct mr_sched *s, uint32_t task);
bool mr_sched__is_part(const struct mr_sched *s, uint32_t task);
/* it refers to a value that is gone */
bool mr_sched__is_broken(const struct mr_sched *s, uint32_t task);
void mr_sched__ref_settle(struct mr_sched *s, uint32_t task);
