/* Values that are sent to workers. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__send_fetch(struct mr_sched *s, uint32_t task);
void mr_sched__send_value(struct mr_sched *s, uint32_t task, uint32_t worker);
void mr_sched__send_bytes(struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str bytes);
