/* Values that are used up where they were made. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint32_t mr_sched__fused_uses(
    const struct mr_sched *s, uint32_t task); /* to be sent along; 0: it is told */
void mr_sched__fused_consumed(struct mr_sched *s, uint32_t task); /* its worker says so */
void mr_sched__fused_other(struct mr_sched *s, uint32_t task); /* somebody else wants the value */
