/* Placement: the worker for a task. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

/* True: the worker has the operator and the resources that tasks of the class need. Also, the class
 * allows any worker, or names this worker or its node. */
bool mr_sched__may_run(const struct mr_sched *s, uint32_t worker, const struct class *c);
/* True: every connected worker may run the task. */
bool mr_sched__all_may_run(const struct mr_sched *s, const struct task *t);
/* True: the worker takes tasks now, and its queue has room for this one. */
bool mr_sched__has_room(const struct mr_sched *s, uint32_t worker, const struct task *t);
/* As mr_sched__has_room, for the task's cached worker: the worker that got the same task in an
 * earlier round or job (placement_cache.h). The queue of this worker may be longer than usual if
 * the task waits for inputs. */
bool mr_sched__has_room_in_cache(const struct mr_sched *s, uint32_t worker, const struct task *t);
/* True: a worker that may run the task has room for it. Crowded workers (mr_sched__is_crowded)
 * count, too. */
bool mr_sched__any_has_room(struct mr_sched *s, const struct task *t);
/* True: the worker is crowded for this root (a task without inputs): the worker's memory, or its
 * node's store, is too full for another result. */
bool mr_sched__is_crowded(struct mr_sched *s, const struct worker *w, const struct task *t);
/* True: the task is ready, and each worker with room for it is crowded. */
bool mr_sched__waits_for_memory(const struct mr_sched *s, uint32_t task);
bool mr_sched__is_better(
    const struct mr_sched *s, uint32_t task, uint32_t worker, uint32_t from, uint64_t taken);
uint32_t mr_sched__place(struct mr_sched *s, uint32_t task); /* a worker, or NONE */
