/* Moves a job along its states when its tasks start, end or fail. Each change is written to the
 * journal. job/job.c handles what clients request. */
#include "services/scheduler/core/task/job_state.h"

#include "base/assert.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/ready_queue.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/journal.h"

void mr_sched__job_started(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    j->state = MR_JOB_RUNNING;
    j->started_wall = mr_sched__wall(s);
    mr_sched__slots_begin(s, j);
    mr_sched__journal_state(s, job);
}

/* Cancels the jobs that tasks of `parent` submitted. Recurses through mr_sched__job_end, at most
 * GENERATIONS_MAX deep (job/job.c). */
static void cancel_children(struct mr_sched *s, uint64_t parent)
{
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        struct job *j = &s->jobs[i];
        if (!j->id || j->parent != parent || j->state > MR_JOB_RUNNING) continue;
        mr_sched__job_end(s, i, MR_JOB_CANCELLED);
    }
}

static void reclaim_start(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    j->unreclaimed = j->graph->nodes_count;
    if (j->flags & J_RECLAIMING) return;
    j->flags |= J_RECLAIMING;
    s->job_list.reclaims[s->job_list.reclaims_count++] = job;
}

void mr_sched__job_end(struct mr_sched *s, uint32_t job, enum mr_job_state state)
{
    struct job *j = &s->jobs[job];
    if (j->state >= MR_JOB_DONE) return;
    j->state = (uint8_t)state;
    j->finished_wall = mr_sched__wall(s);
    j->ended_at = s->now;
    mr_sched__slots_end(s, j);
    s->job_list.running--;
    if (state != MR_JOB_DONE) {
        j->flags |= J_STOPPED;
        mr_sched__queue_job_changed(s, job);
        reclaim_start(s, job);
    }
    mr_sched__journal_state(s, job);
    if (state != MR_JOB_DONE) cancel_children(s, j->id);
}

/* Called when one more target has a value or has failed: ends the job after the last target. */
void mr_sched__job_target_final(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    /* the target's value was lost after the job's end and computed again for a client */
    if (j->state >= MR_JOB_DONE) return;
    mr_assert(j->targets_left > 0);
    if (--j->targets_left) return;
    mr_sched__job_end(s, job, j->targets_failed ? MR_JOB_FAILED : MR_JOB_DONE);
}

void mr_sched__job_forget(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    mr_assert(j->state >= MR_JOB_DONE);
    mr_sched__journal_forgotten(s, j->id);
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_JOB_FORGOTTEN);
    n->job = (mr_job_id){j->id};
    mr_sched__job_unlist(s, job);
    j->flags |= J_FORGETTING | J_STOPPED;
    mr_sched__queue_job_changed(s, job);
    reclaim_start(s, job);
}
