/* Jobs as messages, and the checks that every request about a job begins with. */
#include "services/scheduler/shell/watch.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "graph/explain.h"
#include "graph/loop.h"
#include "host/clock.h"
#include "services/scheduler/shell/sessions.h"

#include <inttypes.h>

#define TARGETS_SHOWN_MAX 1000

bool mr_job_is_over(enum mr_job_state state)
{
    return state == MR_JOB_DONE || state == MR_JOB_FAILED || state == MR_JOB_CANCELLED;
}

static char *text_of(struct mr_shell *sh, char *made)
{
    char *text = mr_shell_text(sh, mr_str(made));
    mr_release(made);
    return text;
}

char *mr_task_complaint(
    struct mr_shell *sh, const struct mr_sched_job_info *info, uint32_t node, int *code)
{
    struct mr_sched_task_info task = {.cause = MR_NODE_NONE};
    (void)mr_sched_task(sh->core, info->id, node, &task);
    bool has_own = task.has_error && task.error.message.n;
    bool was_cancelled = task.state == MR_TASK_CANCELLED;
    bool job_cancelled = info->state == MR_JOB_CANCELLED;
    *code = has_own && task.error.code
                ? task.error.code
                : mr_err_grpc(was_cancelled && job_cancelled ? MR_ECANCELED : MR_ESTATE);
    if (has_own) return mr_shell_text(sh, task.error.message);
    struct mr_str why = info->has_error ? info->error.message : MR_STR("");
    if (task.cause != MR_NODE_NONE) {
        struct mr_str key = mr_graph_key(info->graph, task.cause);
        why = task.cause_error.message;
        return text_of(sh,
            mr_format("%s \"%.*s\"%s failed%s%.*s",
                was_cancelled ? "it did not run: the job ended when" : "it needs", MR_STR_ARG(key),
                was_cancelled ? "" : ", which", why.n ? ": " : "", MR_STR_ARG(why)));
    }
    if (task.state == MR_TASK_ERRED)
        return mr_shell_text(sh, MR_STR("it failed; why is not kept any more"));
    if (was_cancelled)
        return text_of(sh, mr_format("it was cancelled%s%.*s", why.n ? ": " : "", MR_STR_ARG(why)));
    return mr_shell_text(sh, MR_STR("its value is not there any more"));
}

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
    uint32_t over = info->counts[MR_TASK_DONE] + info->counts[MR_TASK_RELEASED] - info->vain;
    m->skipped = MR_MIN(info->skipped, over);
    m->done = over - m->skipped + info->given;
    m->erred = info->counts[MR_TASK_ERRED];
    m->cancelled = info->counts[MR_TASK_CANCELLED] + info->vain;
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

/* What it waits for, if it is not its tasks' number. */
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

bool mr_job_lookup(struct mr_shell *sh, struct mr_rpc_call *call, const char *id, mr_job_id *out,
    struct mr_sched_job_info *info)
{
    if (mr_job_id_parse(mr_str(id), out)) {
        mr_shell_fail(
            call, MR_EINVAL, "id: \"%.64s\" is no job id (they look like j1kq07ab-7)", id);
        return false;
    }
    if (mr_sched_job(sh->core, *out, info)) return true;
    uint64_t wall_ns = mr_sched_forgotten(sh->core, *out);
    if (wall_ns)
        mr_shell_fail(call, MR_ENOENT, "job %s was forgotten at %" PRIu64 " s since 1970", id,
            wall_ns / MR_SECOND);
    else if (mr_sched_is_other_life(sh->core, mr_job_id_tag(*out)))
        mr_shell_fail(call, MR_ENOENT,
            "job %s is of another life of this cluster: Redis came back empty, or from an older "
            "copy, without the scheduler that accepted it",
            id);
    else
        mr_shell_fail(call, MR_ENOENT, "there is no job %s", id);
    return false;
}

bool mr_job_node(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, const char *key, uint32_t *node)
{
    (void)sh;
    *node = mr_graph_find(info->graph, mr_str(key));
    if (*node != MR_NODE_NONE) return true;
    if (mr_graph_was_culled(info->graph, mr_str(key)))
        mr_shell_fail(call, MR_ENOENT, "key \"%s\" was culled: no target needs it", key);
    else
        mr_shell_fail(call, MR_ENOENT, "the job has no key \"%s\"", key);
    return false;
}
