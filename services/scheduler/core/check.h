/* Invariants of the whole state, for the simulator and tests. */
#pragma once

#include "services/scheduler/core/state/types.h"

void mr_sched_check(const struct mr_sched *s); /* asserts every invariant, O(state) */
/* What is left though every job is forgotten, as a text; NULL: nothing. */
const char *mr_sched_leftover(const struct mr_sched *s);
