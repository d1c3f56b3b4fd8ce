/* Records of values. The keeper of a value is the worker that made the value and keeps it. For the
 * core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint32_t mr_sched__value_new(struct mr_sched *s, uint32_t task);
/* Makes the worker the value's keeper. */
void mr_sched__value_keep(struct mr_sched *s, uint32_t value, uint32_t worker);
void mr_sched__value_unkeep(struct mr_sched *s, uint32_t value);
void mr_sched__value_hold(struct mr_sched *s, struct value *v);
/* Frees the record, and tells the value's keeper and store to release the value. `dropped`: the
 * keeper has dropped the value already. */
void mr_sched__value_release(struct mr_sched *s, uint32_t value, bool dropped);
void mr_sched__value_check(const struct mr_sched *s);
