/* Checks that a scheduler's snapshot holds all of its durable state: a second core is made from the
 * snapshot, and its own snapshot must be the same, record by record. */
#pragma once

#include "services/scheduler/core/core.h"

/* Returns whether the snapshot of `s` and the snapshot of a core made from that snapshot are equal.
 * False: `why` names the first record that differs. Epochs are ignored, because each start adds
 * one. To be called for a core that has just recovered, because then no change is under way. */
bool sched_is_same_when_read_again(
    const struct mr_sched *s, const struct mr_sched_config *config, mr_time now, char why[128]);
