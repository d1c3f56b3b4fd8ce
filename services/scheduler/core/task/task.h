/* States of tasks, and what follows from them. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__task_move(struct mr_sched *s, uint32_t task, enum mr_task_state to);
void mr_sched__task_unqueue(struct mr_sched *s, uint32_t task);
/* Queues it; a quarantined task goes to the ring of those. */
void mr_sched__task_ready(struct mr_sched *s, uint32_t task);
/* Takes it off its worker's list: it counts as not sent. Nothing else changes. */
void mr_sched__task_unsend(struct mr_sched *s, uint32_t task);
void mr_sched__fused_release(
    struct mr_sched *s, uint32_t task); /* takes it off its worker: nothing needs its value */
/* Tells its worker to cancel it, and takes it off the worker's list. */
void mr_sched__task_cancel_sent(struct mr_sched *s, uint32_t task);
/* After unsend: it waits or is ready again. */
void mr_sched__task_requeue(struct mr_sched *s, uint32_t task);
void mr_sched__task_inputs_done(struct mr_sched *s, uint32_t task);
/* Its value's record exists. by_worker: the worker that completed this very attempt, or NONE. */
void mr_sched__task_done(struct mr_sched *s, uint32_t task, uint32_t by_worker);
void mr_sched__task_fail(struct mr_sched *s, uint32_t task, const struct failure *failure);
