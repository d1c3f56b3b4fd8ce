/* Checks that a scheduler's snapshot holds all of its durable state. A second core is made from the
 * snapshot; the second core's snapshot must have the same records. */
#pragma once

#include "services/scheduler/core/core.h"

/* Makes a second core from the snapshot of `s`. Returns true if the second core's snapshot is
 * equal; false if a record differs, and then `why` names the first such record. Epochs are ignored,
 * because each start adds one. `s` must have recovered just now, because then no change is under
 * way. */
bool sched_is_same_when_read_again(
    const struct mr_sched *s, const struct mr_sched_config *config, mr_time now, char why[128]);
