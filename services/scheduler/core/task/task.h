/* States of tasks, and what follows from them. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__task_move(struct mr_sched *s, uint32_t task, enum mr_task_state to);
void mr_sched__task_unqueue(struct mr_sched *s, uint32_t task);
/* Takes the task off its worker's list: the task counts as not sent. A RUNNING task becomes READY;
 * a WAITING task stays WAITING. */
void mr_sched__task_unsend(struct mr_sched *s, uint32_t task);
/* Takes a consumed task off its worker's list when nothing needs the task's value any more. A
 * consumed task has run, and its worker uses the value itself without reporting it
 * (task/fused.c). */
void mr_sched__fused_release(struct mr_sched *s, uint32_t task);
/* Tells the task's worker to cancel the task, and takes the task off the worker's list. */
void mr_sched__task_cancel_sent(struct mr_sched *s, uint32_t task);
/* Called after mr_sched__task_unsend: queues the task again, unless its job was stopped. A task
 * that still waits for inputs is queued only if it may be sent before they exist. */
void mr_sched__task_requeue(struct mr_sched *s, uint32_t task);
void mr_sched__task_inputs_done(struct mr_sched *s, uint32_t task, uint32_t last);
/* Called when the task's row in `values` is filled. `by_worker`: the worker that completed the
 * task's last attempt just now, or NONE. */
void mr_sched__task_done(struct mr_sched *s, uint32_t task, uint32_t by_worker);
void mr_sched__task_fail(struct mr_sched *s, uint32_t task, const struct failure *failure);
