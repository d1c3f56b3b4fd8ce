/* Invariants of the whole state, for the simulator and tests. */
#pragma once

#include "services/scheduler/core/state/types.h"

void mr_sched_check(const struct mr_sched *s); /* asserts every invariant, O(state) */
/* Returns the name of something that is left though every job is forgotten; NULL: nothing is
 * left. */
const char *mr_sched_leftover(const struct mr_sched *s);
