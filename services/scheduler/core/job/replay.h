/* Replay of the journal. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__replay(struct mr_sched *s, uint32_t type, struct mr_str bytes, uint64_t sequence);
void mr_sched__replay_end(struct mr_sched *s, uint64_t sequence);
