/* Workers by slot, name and incarnation. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

uint32_t mr_sched__worker_find(const struct mr_sched *s, uint64_t incarnation);
struct worker *mr_sched__worker_new(struct mr_sched *s, uint32_t slot, uint64_t incarnation);
uint32_t mr_sched__worker_find_name(const struct mr_sched *s, struct mr_str name);
void mr_sched__worker_name(struct mr_sched *s, uint32_t slot, struct mr_str name);
/* Returns the first free slot; NONE: there are as many workers as the configuration allows. */
uint32_t mr_sched__worker_place(struct mr_sched *s);
void mr_sched__worker_free(struct mr_sched *s, uint32_t slot);
