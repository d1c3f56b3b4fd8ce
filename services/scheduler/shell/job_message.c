#include "services/scheduler/shell/job_message.h"

#include "base/limits.h"
#include "graph/loop.h"
#include "host/clock.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/shell/sessions.h"

#define TARGETS_SHOWN_MAX 1000

static Millrace__V1__JobError *error_message(
    struct mr_shell *sh, const struct mr_sched_job_info *info)
{
    const struct mr_sched_error *x = &info->error;
    Millrace__V1__JobError *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__job_error__init(m);
    if (x->index != MR_NODE_NONE) m->key = mr_shell_text(sh, mr_graph_key(info->graph, x->index));
    m->message = mr_shell_text(sh, x->message);
    m->fallen = x->fallen;
    if (x->op) m->op = mr_shell_text(sh, mr_sched_op_name(sh->core, x->op));
    m->worker = mr_shell_text(sh, x->worker);
    m->attempts = x->attempts;
    m->arguments = mr_shell_text(sh, x->arguments);
    return m;
}

static Millrace__V1__TaskCounts *counts_message(
    struct mr_shell *sh, const struct mr_sched_job_info *info)
{
    Millrace__V1__TaskCounts *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__task_counts__init(m);
    m->submitted = info->graph->defined_count;
    m->culled = info->graph->culled_count;
    m->joined = info->joined;
    m->waiting = info->counts[MR_TASK_WAITING];
    m->ready = info->counts[MR_TASK_READY];
    m->running = mr_sched_running(sh->core, info->id, NULL);
    m->sent = info->counts[MR_TASK_RUNNING] - m->running;
    uint32_t over = info->counts[MR_TASK_DONE] + info->counts[MR_TASK_RELEASED] - info->abandoned;
    m->skipped = MR_MIN(info->skipped, over);
    m->done = over - m->skipped + info->given;
    m->erred = info->counts[MR_TASK_ERRED];
    m->cancelled = info->counts[MR_TASK_CANCELLED] + info->abandoned;
    m->retried = info->retried;
    m->recomputed = info->recomputed;
    return m;
}

static void add_loops(
    struct mr_shell *sh, const struct mr_sched_job_info *info, Millrace__V1__Job *m)
{
    uint32_t rounds;
    bool by_max;
    m->loops = mr_shell_take(sh, info->graph->loops_count * sizeof *m->loops);
    for (uint32_t i = 0; i < info->graph->loops_count; i++) {
        if (!mr_sched_loop(sh->core, info->id, i, &rounds, &by_max)) continue;
        Millrace__V1__JobLoop *loop = mr_shell_take(sh, sizeof *loop);
        millrace__v1__job_loop__init(loop);
        loop->name = mr_shell_text(sh, info->graph->loops[i].name);
        loop->rounds = rounds;
        loop->end = by_max ? MILLRACE__V1__JOB_LOOP_END__JOB_LOOP_END_MAX
                           : MILLRACE__V1__JOB_LOOP_END__JOB_LOOP_END_UNTIL;
        m->loops[m->n_loops++] = loop;
    }
}

/* Adds what keeps the job from ending: the bytes that stores have yet to write, and the task that
 * has run longest. */
static void add_waits(
    struct mr_shell *sh, const struct mr_sched_job_info *info, Millrace__V1__Job *m)
{
    uint32_t index = 0;
    mr_time since = 0;
    struct mr_sched_task_info task = {.cause = MR_NODE_NONE};
    struct mr_sched_worker_info worker;
    if (mr_job_is_over(info->state)) return;
    m->persisting_bytes = mr_sessions_persisting(sh, info->id);
    if (!mr_sched_longest(sh->core, info->id, &index, &since)) return;
    Millrace__V1__LongestTask *t = mr_shell_take(sh, sizeof *t);
    millrace__v1__longest_task__init(t);
    t->key = mr_shell_text(sh, mr_graph_key(info->graph, index));
    if (mr_sched_task(sh->core, info->id, index, &task) &&
        mr_sched_worker(sh->core, task.worker, &worker))
        t->worker = mr_shell_text(sh, worker.name);
    t->since_ns = mr_clock_wall() - (mr_clock_now() - since);
    m->longest_running = t;
}

Millrace__V1__Job *mr_job_message(struct mr_shell *sh, mr_job_id job)
{
    struct mr_sched_job_info info;
    if (!mr_sched_job(sh->core, job, &info)) return NULL;
    const struct mr_job_options *o = &info.graph->job;
    char id[MR_JOB_ID_TEXT_MAX];
    Millrace__V1__Job *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__job__init(m);
    mr_job_id_format(job, id);
    m->id = mr_shell_text(sh, mr_str(id));
    if (info.parent.v) {
        mr_job_id_format(info.parent, id);
        m->parent = mr_shell_text(sh, mr_str(id));
    }
    m->name = mr_shell_text(sh, o->name);
    m->state = (Millrace__V1__JobState)info.state;
    m->namespace_ = mr_shell_text(sh, o->name_space);
    m->priority = o->priority;
    m->request_id = mr_shell_text(sh, o->request_id);
    m->created_ns = info.created_wall_ns;
    m->started_ns = info.started_wall_ns;
    m->finished_ns = info.finished_wall_ns;
    m->counts = counts_message(sh, &info);
    if (info.has_error) m->error = error_message(sh, &info);
    add_waits(sh, &info, m);
    m->labels = mr_shell_take(sh, o->labels_count * sizeof *m->labels);
    for (uint32_t i = 0; i < o->labels_count; i++) {
        Millrace__V1__Job__LabelsEntry *row = mr_shell_take(sh, sizeof *row);
        millrace__v1__job__labels_entry__init(row);
        row->key = mr_shell_text(sh, o->labels[i].name);
        row->value = mr_shell_text(sh, o->labels[i].value);
        m->labels[m->n_labels++] = row;
    }
    add_loops(sh, &info, m);
    m->targets_count = info.graph->targets_count;
    size_t shown = MR_MIN(info.graph->targets_count, (uint32_t)TARGETS_SHOWN_MAX);
    m->targets = mr_shell_take(sh, shown * sizeof *m->targets);
    for (size_t i = 0; i < shown; i++)
        m->targets[m->n_targets++] =
            mr_shell_text(sh, mr_graph_key(info.graph, info.graph->targets[i]));
    return m;
}
