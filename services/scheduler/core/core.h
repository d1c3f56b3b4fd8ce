/* The scheduler's core decides which task runs where and when, and how long its value is kept. It
 * is a deterministic state machine. It knows jobs, graphs, workers, values and the journal; it
 * knows no sockets, messages, clocks or Redis. The shell feeds it events, performs its effects, and
 * queries it between steps (query.h, running.h, explain.h). Owner: the core thread.
 *
 * Inside, a task is a number, dense over all jobs; outside the process, a task is (job, index,
 * attempt). The state of a task (enum mr_task_state) and the worker that it was sent to are
 * separate facts.
 *
 * Folders, from the bottom: state (tables), index (look-ups and orders), task (states and their
 * consequences), place (dispatch and placement), cluster (workers and stores), job (requests, plan,
 * replay), and these files. */
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
/* Returns the size of the arena for mr_sched_new. The core borrows the arena until
 * mr_sched_free. */
size_t mr_sched_arena_bytes(const struct mr_sched_config *c);
struct mr_sched *mr_sched_new(const struct mr_sched_config *c, struct mr_arena *arena);
void mr_sched_free(struct mr_sched **s); /* frees the graphs; the caller owns the arena */

void mr_sched_step(
    struct mr_sched *s, mr_time now, const struct mr_sched_event *ev, struct mr_sched_effects *fx);
/* Returns the time by which the core wants a tick; MR_NEVER: the core needs no tick. */
mr_time mr_sched_deadline(const struct mr_sched *s);
