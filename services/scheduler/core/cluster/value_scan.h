/* Walks over all values, a bounded part in each step. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__scan_tick(struct mr_sched *s);
void mr_sched__scan(struct mr_sched *s, enum scan_type type, uint32_t store,
    const mr_object_id *ids, uint32_t count);
void mr_sched__scan_replaced(struct mr_sched *s, uint32_t store, uint32_t heir);
void mr_sched__scan_fini(struct scan_ring *r);
