/* Workers that are silent, lost or retire. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__worker_closed(struct mr_sched *s, uint32_t slot, uint64_t incarnation);
void mr_sched__worker_lost(
    struct mr_sched *s, uint32_t slot, const struct mr_ws_refs *ran, const char *why);
void mr_sched__worker_retire(struct mr_sched *s, uint32_t slot, uint64_t incarnation);
void mr_sched__worker_leases(struct mr_sched *s);
