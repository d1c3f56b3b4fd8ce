/* Object stores. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Returns the number of the store with this incarnation. A new incarnation gets a new number. 0:
 * `incarnation` is 0, or there are too many stores. */
uint32_t mr_sched__store(struct mr_sched *s, uint64_t incarnation, struct mr_str address);
void mr_sched__store_replay(struct mr_sched *s, uint64_t incarnation, struct mr_str node);
void mr_sched__store_register(struct mr_sched *s, const struct mr_sched_store *st);
void mr_sched__store_heard(struct mr_sched *s, const struct mr_sched_store *st, bool is_connected);
/* True: store `n` was lost, and its node has a new store. */
bool mr_sched__store_is_replaced(const struct mr_sched *s, uint32_t n);
void mr_sched__store_leases(struct mr_sched *s);
void mr_sched__objects_lost(struct mr_sched *s, const struct mr_sched_objects *o);
void mr_sched__objects_unheld(struct mr_sched *s, const struct mr_sched_objects *o);
