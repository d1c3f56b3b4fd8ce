/* Placement: the worker for a task. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__may_run(const struct mr_sched *s, uint32_t worker, const struct class *c);
bool mr_sched__has_room(const struct mr_sched *s, uint32_t worker, const struct task *t);
bool mr_sched__has_room_again(const struct mr_sched *s, uint32_t worker, const struct task *t);
bool mr_sched__is_universal(const struct mr_sched *s, const struct task *t);
bool mr_sched__is_better(
    const struct mr_sched *s, uint32_t task, uint32_t worker, uint32_t from, uint64_t taken);
bool mr_sched__is_crowded(struct mr_sched *s, const struct worker *w, const struct task *t);
bool mr_sched__has_place(struct mr_sched *s,
    const struct task *t); /* true: some worker has room, if memory is left aside */
uint32_t mr_sched__place(struct mr_sched *s, uint32_t task); /* a worker, or NONE */
