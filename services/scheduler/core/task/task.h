/* States of tasks, and what follows from them. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__task_move(struct mr_sched *s, uint32_t task, enum mr_task_state to);
void mr_sched__task_unqueue(struct mr_sched *s, uint32_t task);
/* queues it, or puts it into quarantine */
void mr_sched__task_ready(struct mr_sched *s, uint32_t task);
/* Takes it off its worker's list and back to uncovered; nothing else changes. */
void mr_sched__task_unsend(struct mr_sched *s, uint32_t task);
void mr_sched__fused_release(
    struct mr_sched *s, uint32_t task); /* off its worker: nothing needs its value */
/* tells the worker and takes it off the list */
void mr_sched__task_cancel_sent(struct mr_sched *s, uint32_t task);
/* after unsend: it waits or is ready */
void mr_sched__task_requeue(struct mr_sched *s, uint32_t task);
void mr_sched__task_inputs_done(struct mr_sched *s, uint32_t task);
/* The value's record is there. by_worker: the worker that completed what it was sent, or NONE. */
void mr_sched__task_done(struct mr_sched *s, uint32_t task, uint32_t by_worker);
void mr_sched__task_fail(struct mr_sched *s, uint32_t task, const struct failure *failure);
