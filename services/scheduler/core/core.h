/* The scheduler's core: which task runs where, when, and what becomes of its value. A deterministic
 * state machine over dense task numbers; it knows jobs, graphs, workers, values and the journal,
 * and refuses to know sockets, messages, clocks and Redis. The shell feeds it events, performs its
 * effects, and asks the questions below between steps. One owner: the core thread.
 *
 * A task number is dense over all jobs and never leaves the process; outside a task is (job, index,
 * attempt). Two facts are kept apart: what a task is (enum mr_task_state) and where it was sent. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "services/scheduler/core/check.h"
#include "services/scheduler/core/explain.h"
#include "services/scheduler/core/job/snapshot.h"
#include "services/scheduler/core/query.h"
#include "services/scheduler/core/running.h"
#include "services/scheduler/core/state/effect.h"
#include "services/scheduler/core/state/event.h"
#include "services/scheduler/core/state/types.h"

void mr_sched_config_default(struct mr_sched_config *c);
/* The arena is lent for the life of the core; its size for a config: mr_sched_arena_bytes. */
size_t mr_sched_arena_bytes(const struct mr_sched_config *c);
struct mr_sched *mr_sched_new(const struct mr_sched_config *c, struct mr_arena *arena);
void mr_sched_free(struct mr_sched **s); /* frees the graphs; the arena is its owner's */

void mr_sched_step(
    struct mr_sched *s, mr_time now, const struct mr_sched_event *ev, struct mr_sched_effects *fx);
mr_time mr_sched_deadline(const struct mr_sched *s); /* step with a tick by then, or MR_NEVER */
