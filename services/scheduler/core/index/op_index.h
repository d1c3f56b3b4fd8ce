/* Operators by name. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Returns the number of the operator with this name, and enters a new name. 0: the table is
 * full. */
uint32_t mr_sched__op(struct mr_sched *s, struct mr_str name);
