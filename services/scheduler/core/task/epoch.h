/* Which ids are ours, and the epoch above all that others have seen. For the core's own files only.
 */
#pragma once

#include "services/scheduler/core/state/state.h"

uint64_t mr_sched__id(const struct mr_sched *s, uint32_t number); /* of a job or a worker */
void mr_sched__epoch_replay(struct mr_sched *s, uint64_t incarnation);
void mr_sched__epoch_begin(struct mr_sched *s); /* the journal is read */
void mr_sched__epoch_heard(struct mr_sched *s, uint32_t epoch, uint64_t incarnation);
bool mr_sched__is_other_life(const struct mr_sched *s, uint32_t tag);
