/* States of tasks, and what follows from them. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__task_move(struct mr_sched *s, uint32_t task, enum mr_task_state to);
void mr_sched__task_unqueue(struct mr_sched *s, uint32_t task);
void mr_sched__task_ready(struct mr_sched *s, uint32_t task); /* queue it, or wait as a suspect */
/* Off the worker's list; the two facts "sent" and "covered" change, nothing else. */
void mr_sched__task_unsend(struct mr_sched *s, uint32_t task);
void mr_sched__fused_release(
    struct mr_sched *s, uint32_t task); /* off its worker: nobody needs it */
void mr_sched__task_cancel_sent(struct mr_sched *s, uint32_t task); /* tells the worker, unsends */
void mr_sched__task_requeue(struct mr_sched *s, uint32_t task);     /* unsent: wait or be ready */
void mr_sched__task_inputs_done(struct mr_sched *s, uint32_t task);
/* Its value record stands. by_worker: that completed what was sent to it, or NONE. */
void mr_sched__task_done(struct mr_sched *s, uint32_t task, uint32_t by_worker);
void mr_sched__task_fail(struct mr_sched *s, uint32_t task, const struct failure *failure);
