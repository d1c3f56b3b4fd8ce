/* The scheduler's core decides which task runs where and when, and what becomes of its value. It is
 * a deterministic state machine over dense task numbers. It knows jobs, graphs, workers, values and
 * the journal; it knows no sockets, messages, clocks or Redis. The shell feeds it events, performs
 * its effects, and asks questions between steps (query.h, running.h, explain.h). Owner: the core
 * thread.
 *
 * A task number is dense over all jobs and never leaves the process; outside, a task is (job,
 * index, attempt). Two facts are kept apart: the state of a task (enum mr_task_state) and where it
 * was sent.
 *
 * Folders, from the bottom: state (tables), index (look-ups and orders), task (states and what
 * follows), place (where and when), cluster (workers and stores), job (requests, plan, replay), and
 * these files. */
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
void mr_sched_free(struct mr_sched **s); /* frees the graphs; the caller owns the arena */

void mr_sched_step(
    struct mr_sched *s, mr_time now, const struct mr_sched_event *ev, struct mr_sched_effects *fx);
mr_time mr_sched_deadline(const struct mr_sched *s); /* step with a tick by then, or MR_NEVER */
