/* Reference counts of values: which task keeps whose value. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__is_by_reference(const struct mr_sched *s, uint32_t task);
bool mr_sched__is_referring(const struct mr_sched *s, uint32_t task); /* its value names others */
bool mr_sched__may_name(const struct mr_sched *s, uint32_t by, uint32_t task);
uint32_t mr_sched__ref_count(const struct mr_sched *s, uint32_t task); /* counted */
/* It claims its inputs no more. by_worker: it just completed there, and what was marked as its last
 * use is dropped there already. */
void mr_sched__unref(struct mr_sched *s, uint32_t task, uint32_t by_worker);
void mr_sched__unref_one(struct mr_sched *s, uint32_t task);   /* one less on it */
void mr_sched__ref_all(struct mr_sched *s, uint32_t task);     /* all inputs */
void mr_sched__ref_invalid(struct mr_sched *s, uint32_t task); /* onto the stack */
void mr_sched__ref_again(struct mr_sched *s, uint32_t task);
bool mr_sched__is_part(const struct mr_sched *s, uint32_t task);
bool mr_sched__is_broken(const struct mr_sched *s, uint32_t task); /* it refers to no value */
void mr_sched__ref_settle(struct mr_sched *s, uint32_t task);
