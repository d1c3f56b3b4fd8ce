/* Does a scheduler's snapshot hold all of its durable state? A second core reads the snapshot, and
 * its own snapshot must be the same, record by record. */
#pragma once

#include "services/scheduler/core/core.h"

/* False: `why` says which record is another. Epochs are left out, for every life adds one. To be
 * asked of a core that has just recovered: whatever was under way is settled then. */
bool sched_is_same_when_read_again(
    const struct mr_sched *s, const struct mr_sched_config *config, mr_time now, char why[128]);
