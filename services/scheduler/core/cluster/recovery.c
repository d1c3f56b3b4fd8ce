/* The end of recovery after a restart. Until then replayed jobs are held back, because workers may
 * still have their tasks and values. */
#include "services/scheduler/core/cluster/recovery.h"

#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"

/* Ends recovery as soon as every worker that the journal names has registered again or is lost. */
void mr_sched__recover_tick(struct mr_sched *s)
{
    if (!s->is_recovering) return;
    for (uint32_t i = 0; i < s->worker_list.top; i++)
        if (s->workers[i].state != W_FREE && s->workers[i].is_unrecovered) return;
    s->is_recovering = false;
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        struct job *j = &s->jobs[i];
        if (!j->id || !(j->flags & J_HELD_BACK)) continue;
        j->flags &= ~(uint32_t)J_HELD_BACK;
        mr_sched__loop_infer(s, i);
        for (uint32_t k = 0; j->flags & J_REFERS && k < j->graph->nodes_count; k++)
            mr_sched__ref_settle(s, j->base + k);
        mr_sched__queue_job_changed(s, i);
    }
    s->has_work = true;
}
