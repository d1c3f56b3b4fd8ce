/* Recognises ids of a lost journal: a scheduler made these ids of jobs and workers, and Redis has
 * lost the journal of that scheduler. Each start of a scheduler has an epoch, a number that grows.
 * This module keeps the epoch above all epochs that workers and stores report. For the core's own
 * files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Makes the id of a job or a worker from its number. */
uint64_t mr_sched__id(const struct mr_sched *s, uint32_t number);
/* Called when a replayed record names a scheduler that wrote the journal. `incarnation`: the random
 * number of that scheduler's start. */
void mr_sched__epoch_replay(struct mr_sched *s, uint64_t incarnation);
/* Writes this scheduler's epoch to the journal. Called when the whole journal was read. */
void mr_sched__epoch_begin(struct mr_sched *s);
void mr_sched__epoch_heard(struct mr_sched *s, uint32_t epoch, uint64_t incarnation);
bool mr_sched__is_lost_journal(const struct mr_sched *s, uint32_t tag);
