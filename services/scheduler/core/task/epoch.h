/* Recognises ids that a scheduler gave while it wrote a journal that Redis has lost since. Keeps
 * this scheduler's epoch higher than any epoch that workers and stores report. For the core's own
 * files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* Makes the id of a job or a worker from its number. */
uint64_t mr_sched__id(const struct mr_sched *s, uint32_t number);
/* Records the incarnation of a scheduler that wrote the journal, as the journal says. */
void mr_sched__epoch_replay(struct mr_sched *s, uint64_t incarnation);
/* Writes this scheduler's epoch to the journal. Called when the whole journal was read. */
void mr_sched__epoch_begin(struct mr_sched *s);
void mr_sched__epoch_heard(struct mr_sched *s, uint32_t epoch, uint64_t incarnation);
bool mr_sched__is_lost_journal(const struct mr_sched *s, uint32_t tag);
