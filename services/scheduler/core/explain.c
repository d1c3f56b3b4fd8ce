/* Why a task ran, runs, waits or will never run: one sentence, then the reasons, the nearest first.
 * All are read from the state. */
#include "services/scheduler/core/explain.h"

#include "graph/explain.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/place/memory_retry.h"
#include "services/scheduler/core/place/place.h"
#include "services/scheduler/core/running.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/loop.h"

#include <inttypes.h>

#define REASONS_MAX 8

static struct mr_str key_of(const struct mr_sched *s, uint32_t task)
{
    return mr_graph_key(job_of(s, task)->graph, index_of(s, task));
}

static const char *word(enum mr_task_state state)
{
    static const char *const words[MR_TASK_STATES] = {[MR_TASK_NONE] = "was not planned",
        [MR_TASK_WAITING] = "waits",
        [MR_TASK_READY] = "is ready",
        [MR_TASK_RUNNING] = "runs",
        [MR_TASK_DONE] = "is done",
        [MR_TASK_RELEASED] = "is done and released",
        [MR_TASK_ERRED] = "failed",
        [MR_TASK_CANCELLED] = "was cancelled"};
    return words[state];
}

/* Lists the inputs without a value, with their states. */
static void waits(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct job *j = job_of(s, task);
    uint32_t n;
    uint32_t shown = 0;
    uint32_t missing = 0;
    const uint32_t *in = mr_sched__inputs(s, task, &n);
    if (s->tasks[task].is_exit && !mr_sched__loop_is_decided(s, task))
        mr_buf_printf(out, "\"%.*s\" waits for the end of its loop\n", MR_STR_ARG(key_of(s, task)));
    mr_sched__loop_explain(s, task, out);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + in[i]];
        if (is_done(u)) continue;
        missing++;
        if (shown++ >= REASONS_MAX) continue;
        if (shown == 1)
            mr_buf_printf(out, "\"%.*s\" waits for \"%.*s\", which %s\n",
                MR_STR_ARG(key_of(s, task)), MR_STR_ARG(key_of(s, j->base + in[i])),
                word((enum mr_task_state)u->state));
        else
            mr_buf_printf(out, "it waits for \"%.*s\" too, which %s\n",
                MR_STR_ARG(key_of(s, j->base + in[i])), word((enum mr_task_state)u->state));
    }
    if (missing > REASONS_MAX)
        mr_buf_printf(out, "and for %" PRIu32 " more inputs\n", missing - REASONS_MAX);
    if (s->tasks[task].flags & T_SENT)
        mr_buf_printf(out,
            "it was sent to \"%s\" already, and starts there when its inputs arrive\n",
            s->workers[s->tasks[task].worker].facts->name);
}

/* Lists why no worker takes the ready task: no worker fulfils its demands, or none has room now. */
static void unplaced(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct task *t = &s->tasks[task];
    const struct class *c = &s->classes[t->class];
    const struct op *op = &s->ops[c->op];
    if (!s->worker_list.live)
        mr_buf_add_text(out, "no worker is connected\n");
    else if (!op->workers)
        mr_buf_printf(out, "no worker offers the op \"%.*s\"\n", MR_STR_ARG(op->name));
    for (uint32_t r = 0; r < s->class_list.resources_count; r++) {
        uint64_t most = 0;
        for (uint32_t i = 0; i < s->worker_list.top; i++)
            if (s->workers[i].state != W_FREE)
                most = MR_MAX(most, s->workers[i].facts->capacity[r]);
        if (t->class >= s->config.ops_max && c->need[r] > most)
            mr_buf_printf(out,
                "it asks for %g of the resource \"%s\", and no worker has more than %g\n",
                (double)c->need[r] / 1e6, s->class_list.resource_names[r], (double)most / 1e6);
    }
    for (uint32_t i = 0; i < c->names_count && !c->any_worker; i++)
        mr_buf_printf(out, "it may run on \"%.*s\" only\n", MR_STR_ARG(c->names[i]));
    if (t->flags & T_QUARANTINED)
        mr_buf_printf(out,
            "it is in quarantine, since a worker crashed while it ran (crashes blamed on it: %u; %u "
            "fail it): next it runs %s\n",
            t->kills, KILLS_MAX,
            mr_sched__is_probation_alone(t) ? "alone on an empty worker"
                                            : "apart from other quarantined tasks");
    if (s->is_recovering)
        mr_buf_add_text(
            out, "the scheduler was restarted and waits until its workers have registered again\n");
    if (s->journal.written_bytes - s->journal.acked_bytes > s->config.unacked_bytes_max)
        mr_buf_add_text(
            out, "dispatch is paused until Redis has acknowledged more of the journal\n");
    mr_sched__memory_retry_explain(s, (uint32_t)(t - s->tasks), out);
    if (mr_sched__waits_for_memory(s, task))
        mr_buf_add_text(out,
            "workers have room for it, but their memory is nearly full: it waits until values are "
            "released, or until a worker runs nothing else\n");
    else if (t->flags & T_PARKED)
        mr_buf_add_text(out, "no worker that may run it has room now\n");
}

static void waits_for_place(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct job *j = job_of(s, task);
    size_t before = out->n;
    mr_buf_printf(out, "\"%.*s\" is ready and waits for a worker\n", MR_STR_ARG(key_of(s, task)));
    size_t said = out->n;
    unplaced(s, task, out);
    if (out->n == said && before < out->n)
        mr_buf_printf(out, "%" PRIu32 " tasks of its job are ready, and those before it go first\n",
            j->queued);
}

static void never(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct job *j = job_of(s, task);
    struct mr_str key = key_of(s, task);
    if (j->state == MR_JOB_CANCELLED)
        mr_buf_printf(out, "\"%.*s\" will not run: the job was cancelled%s%s\n", MR_STR_ARG(key),
            j->has_failure && j->failure.message ? ": " : "",
            j->has_failure && j->failure.message ? j->failure.message : "");
    else if (j->has_failure && j->failure.task != NONE)
        mr_buf_printf(out, "\"%.*s\" will not run: the job ended when \"%.*s\" failed: %s\n",
            MR_STR_ARG(key), MR_STR_ARG(key_of(s, j->failure.task)),
            j->failure.message ? j->failure.message : "");
    else
        mr_buf_printf(out, "\"%.*s\" will not run: the job has ended%s%s\n", MR_STR_ARG(key),
            j->has_failure ? ": " : "",
            j->has_failure && j->failure.message ? j->failure.message : "");
}

static void failed(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct job *j = job_of(s, task);
    const struct failure *st = mr_sched__failure(s, task);
    struct mr_str key = key_of(s, task);
    uint32_t n;
    if (st) {
        mr_buf_printf(out, "\"%.*s\" failed: %s\n", MR_STR_ARG(key),
            st->message ? st->message : "no reason was given");
        if (st->attempts > 1)
            mr_buf_printf(out, "it was sent to workers %" PRIu32 " times\n", st->attempts);
        if (st->worker) mr_buf_printf(out, "the last attempt was on \"%s\"\n", st->worker);
        return;
    }
    uint32_t cause = s->tasks[task].cause, shown = 0;
    if (cause == task) {
        mr_buf_printf(out,
            "\"%.*s\" failed; its error text is no longer kept, since the job has many failures\n",
            MR_STR_ARG(key));
        return;
    }
    mr_buf_printf(out, "\"%.*s\" never ran: something that it needs failed\n", MR_STR_ARG(key));
    const uint32_t *in = mr_graph_inputs(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n && shown < REASONS_MAX; i++) {
        if (s->tasks[j->base + in[i]].state != MR_TASK_ERRED) continue;
        bool is_it = j->base + in[i] == cause; /* the cause is listed next, with its reason */
        if (!is_it)
            mr_buf_printf(
                out, "its input \"%.*s\" failed\n", MR_STR_ARG(key_of(s, j->base + in[i])));
        shown++;
    }
    st = mr_sched__failure(s, cause);
    mr_buf_printf(out, "it needs \"%.*s\", which failed%s%s\n", MR_STR_ARG(key_of(s, cause)),
        st && st->message ? ": " : "", st && st->message ? st->message : "");
}

/* Explains a task that was abandoned (released without a value), and names its first consumer that
 * failed. */
static void abandoned(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct job *j = job_of(s, task);
    uint32_t n, user = NONE;
    const uint32_t *d = mr_graph_dependents(j->graph, task - j->base, &n);
    for (uint32_t i = 0; i < n && user == NONE; i++)
        if (s->tasks[j->base + d[i]].state == MR_TASK_ERRED) user = j->base + d[i];
    mr_buf_printf(out, "\"%.*s\" %s: what needs it failed\n", MR_STR_ARG(key_of(s, task)),
        s->tasks[task].attempt ? "was stopped" : "will not run");
    if (user == NONE) return; /* no consumer of `task` has failed: all were abandoned, too */
    const struct failure *st = mr_sched__failure(s, s->tasks[user].cause);
    mr_buf_printf(out, "\"%.*s\" needs it, and failed%s%s\n", MR_STR_ARG(key_of(s, user)),
        st && st->message ? ": " : "", st && st->message ? st->message : "");
}

static void ran(const struct mr_sched *s, uint32_t task, struct mr_buf *out)
{
    const struct job *j = job_of(s, task);
    const struct task *t = &s->tasks[task];
    struct mr_str key = key_of(s, task);
    uint32_t path[REASONS_MAX];
    if (t->is_abandoned) {
        abandoned(s, task, out);
        return;
    }
    if (t->flags & T_FIXED) {
        mr_buf_printf(
            out, "\"%.*s\" is no task: its value was given with the job\n", MR_STR_ARG(key));
    } else if (mr_sched__loop_is_skipped(s, task)) {
        mr_buf_printf(
            out, "\"%.*s\" did not run: the loop ended before its round\n", MR_STR_ARG(key));
        mr_sched__loop_explain(s, task, out);
        return;
    } else if (!t->attempt && t->state == MR_TASK_DONE) {
        mr_buf_printf(out, "\"%.*s\" did not run: its result was there already, under its name\n",
            MR_STR_ARG(key));
    } else if (!t->attempt) {
        mr_buf_printf(
            out, "\"%.*s\" is not needed: what needs it has its value\n", MR_STR_ARG(key));
    } else {
        mr_buf_printf(out, "\"%.*s\" ran%s\n", MR_STR_ARG(key),
            t->state == MR_TASK_RELEASED ? ", and nobody needs its value any more" : "");
        if (t->attempt > 1)
            mr_buf_printf(out, "it was sent to workers %" PRIu32 " times\n", t->attempt);
        if (t->is_exit) mr_sched__loop_explain(s, task, out);
    }
    uint32_t n = mr_graph_path_to_target(j->graph, task - j->base, path, REASONS_MAX);
    if (t->flags & T_TARGET)
        mr_buf_add_text(out, "it is a target of the job\n");
    else if (n > 1 && !(s->tasks[j->base + path[n - 1]].flags & T_TARGET))
        mr_buf_printf(out, "a target needs it, through \"%.*s\" and more than %d others\n",
            MR_STR_ARG(mr_graph_key(j->graph, path[1])), REASONS_MAX - 2);
    else if (n > 1)
        mr_buf_printf(out, "the target \"%.*s\" needs it, through \"%.*s\"\n",
            MR_STR_ARG(mr_graph_key(j->graph, path[n - 1])),
            MR_STR_ARG(mr_graph_key(j->graph, path[1])));
}

bool mr_sched_explain(const struct mr_sched *s, mr_job_id id, uint32_t index, struct mr_buf *lines)
{
    uint32_t job = mr_sched__job_find(s, id.v);
    if (job == NONE || index >= s->jobs[job].graph->nodes_count) return false;
    uint32_t task = s->jobs[job].base + index;
    const struct task *t = &s->tasks[task];
    if (t->flags & T_FIXED) {
        ran(s, task, lines);
        return true;
    }
    switch ((enum mr_task_state)t->state) {
    case MR_TASK_WAITING: waits(s, task, lines); break;
    case MR_TASK_READY: waits_for_place(s, task, lines); break;
    case MR_TASK_RUNNING:
        mr_buf_printf(lines, "\"%.*s\" was sent to \"%s\" and %s\n", MR_STR_ARG(key_of(s, task)),
            s->workers[t->worker].facts->name,
            t->flags & T_STARTED                ? "runs there"
            : mr_sched_is_running(s, id, index) ? "runs there or is about to"
                                                : "waits there for a slot");
        mr_sched__memory_retry_explain(s, task, lines);
        break;
    case MR_TASK_DONE:
    case MR_TASK_RELEASED: ran(s, task, lines); break;
    case MR_TASK_ERRED: failed(s, task, lines); break;
    case MR_TASK_CANCELLED: never(s, task, lines); break;
    case MR_TASK_NONE:
    case MR_TASK_STATES: mr_buf_add_text(lines, "it was not planned\n"); break;
    }
    return true;
}
