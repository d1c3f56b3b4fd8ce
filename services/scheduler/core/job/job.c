/* Requests about jobs: submit, cancel, retry, forget, and the value of a target. Replies wait for
 * the journal (task/journal.c). Tasks of ended jobs are reclaimed incrementally. */
#include "services/scheduler/core/job/job.h"

#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/placement_table.h"
#include "services/scheduler/core/job/plan.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/epoch.h"
#include "services/scheduler/core/task/job_state.h"
#include "services/scheduler/core/task/journal.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"
#include "services/scheduler/core/task/value_delivery.h"

#include <stdio.h>

/* A task may submit a job, whose tasks may submit jobs in turn. This limits the depth. */
#define GENERATIONS_MAX 16
#define DROP_AT_ONCE 100 /* limit of ended jobs that one tick forgets */

static void promise_accept(struct mr_sched *s, uint32_t job, uint64_t ticket, bool existed)
{
    struct pending p = {.type = P_ACCEPT,
        .sequence = s->journal.sequence,
        .job = s->jobs[job].id,
        .ticket = ticket,
        .state = existed};
    mr_sched__promise(s, &p);
}

/* Queues the reply until Redis has acknowledged all records written so far. The state that the
 * reply confirms depends on these records, whichever request wrote them. */
static void promise_reply(struct mr_sched *s, uint64_t job, uint64_t ticket)
{
    struct pending p = {
        .type = P_REPLY, .sequence = s->journal.sequence, .job = job, .ticket = ticket};
    mr_sched__promise(s, &p);
}

/* True: too many replies wait for the journal, so the request was refused. Clients that repeat
 * requests while Redis is away must not fill the ring of replies. */
static bool is_crowded(struct mr_sched *s, uint64_t ticket, mr_job_id job)
{
    if (s->journal.pending_end - s->journal.pending_at < s->config.tasks_max / 2) return false;
    mr_sched__reply(
        s, ticket, job, MR_EAWAY, "too many answers wait for the journal; try again later");
    return true;
}

/* True: a job with this request id exists, so the request is answered: with that job if the body is
 * the same (idempotency), else with an error. */
static bool is_known_request(struct mr_sched *s, const struct mr_sched_event *ev)
{
    struct mr_str id = ev->submit.graph->job.request_id;
    if (!id.n) return false;
    uint32_t job = mr_sched__request_find(s, id);
    if (job == NONE) return false;
    const struct job *j = &s->jobs[job];
    if (mr_graph_hash_eq(j->body_hash, ev->submit.body_hash)) {
        if (!is_crowded(s, ev->submit.ticket, (mr_job_id){j->id}))
            promise_accept(s, job, ev->submit.ticket, true);
        return true;
    }
    char text[MR_ERROR_TEXT_MAX], name[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format((mr_job_id){j->id}, name);
    (void)snprintf(text, sizeof text, "request_id \"%.*s\" was used for another body, by job %s",
        (int)MR_MIN(id.n, (size_t)128), id.p, name);
    mr_sched__reply(s, ev->submit.ticket, (mr_job_id){j->id}, MR_EEXIST, text);
    return true;
}

/* Checks that the submitting task runs, and that the chain of parent jobs above the new job has at
 * most GENERATIONS_MAX jobs. */
static int check_parent(
    const struct mr_sched *s, const struct mr_sched_parent *p, struct mr_error *e)
{
    if (!p->job.v) return MR_OK;
    if (s->is_recovering)
        return mr_fail(e, MR_EAWAY,
            "parent: after a restart, the scheduler does not know yet what runs; try again");
    char name[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format(p->job, name);
    uint32_t job = mr_sched__job_find(s, p->job.v);
    const struct job *j = job == NONE ? NULL : &s->jobs[job];
    bool is_here = j && j->state <= MR_JOB_RUNNING && p->index < j->graph->nodes_count;
    const struct task *t = is_here ? &s->tasks[j->base + p->index] : NULL;
    if (!j && mr_sched__is_lost_journal(s, mr_job_id_tag(p->job)))
        return mr_fail(e, MR_ESTATE, "parent: job %s is from a journal that Redis has lost", name);
    if (!t || !(t->flags & T_SENT) || t->attempt != p->attempt)
        return mr_fail(e, MR_ESTATE, "parent: attempt %u of task %u of job %s does not run",
            p->attempt, p->index, name);
    uint32_t generations = 1;
    for (; job != NONE && s->jobs[job].parent; generations++)
        job = mr_sched__job_find(s, s->jobs[job].parent);
    if (generations <= GENERATIONS_MAX) return MR_OK;
    return mr_fail(e, MR_ELIMIT,
        "parent: a child of job %s would be at depth %u of jobs that tasks submitted, at most %d",
        name, generations, GENERATIONS_MAX);
}

/* Makes the submitting task give its slot back, since it may wait for a job that needs the slot. */
static void parent_leaves(struct mr_sched *s, const struct mr_sched_parent *p)
{
    if (!p->job.v) return;
    const struct task *t = &s->tasks[s->jobs[mr_sched__job_find(s, p->job.v)].base + p->index];
    if (t->flags & T_LONG) return;
    mr_sched__refs_add(&mr_sched__batch_more(s, t->worker)->leave, p->job.v, p->index, p->attempt);
}

void mr_sched__job_submit(struct mr_sched *s, const struct mr_sched_event *ev)
{
    const struct mr_sched_submit *sub = &ev->submit;
    struct mr_graph *graph = sub->graph;
    if (is_known_request(s, ev)) {
        mr_graph_free(&graph);
        return;
    }
    struct mr_error e = {0};
    uint64_t waiting = s->journal.written_bytes - s->journal.acked_bytes;
    uint32_t job = NONE;
    if (s->journal.is_away && waiting > s->config.unacked_bytes_max / 2)
        (void)mr_fail(
            &e, MR_EAWAY, "Redis is away, and too much waits for the journal; try again later");
    else if (!check_parent(s, &sub->parent, &e))
        job = mr_sched__job_add(s, mr_sched__id(s, ++s->job_list.number), &graph, &e);
    if (job == NONE) {
        mr_sched__reply(s, sub->ticket, (mr_job_id){0}, e.code, e.text);
        mr_graph_free(&graph);
        return;
    }
    struct job *j = &s->jobs[job];
    mr_sched__cache_share(s, job, sub->template);
    const struct mr_job_options *options = &j->graph->job;
    int err = mr_sched__resolve(s, job, sub->resolved, sub->resolved_count, &e);
    if (!err) err = mr_sched__shared_key_link(s, job, &e);
    if (err) {
        mr_sched__reply(s, sub->ticket, (mr_job_id){0}, e.code, e.text);
        mr_sched__job_drop(s, job);
        return;
    }
    j->created_wall = mr_sched__wall(s);
    j->body_hash = sub->body_hash;
    j->parent = sub->parent.job.v;
    j->deadline = options->deadline ? mr_time_after(s->now, options->deadline) : MR_NEVER;
    s->due.jobs = MR_MIN(s->due.jobs, j->deadline);
    mr_sched__journal_job(s, job, sub);
    promise_accept(s, job, sub->ticket, false);
    parent_leaves(s, &sub->parent);
    s->job_list.unplanned = job;
    s->has_work = true;
}

/* Plans an accepted job, in the step after the one that accepted it. Planning takes about as long
 * as writing the graph to Redis, so the shell starts the write in between. */
void mr_sched__job_plan(struct mr_sched *s)
{
    if (s->job_list.unplanned == NONE) return;
    uint32_t job = s->job_list.unplanned;
    s->job_list.unplanned = NONE;
    mr_sched__plan(s, job);
    mr_sched__shared_key_journal(s, job);
    mr_sched__shared_key_settle(s, job);
    if (!s->jobs[job].targets_left) mr_sched__job_end(s, job, MR_JOB_DONE);
}

/* Ends a task of an ended job. An unfinished task is cancelled. The value of a done task is
 * released, unless the task is a target, a target refers to it, or another job uses it. The value
 * is also released if it refers to a value that is gone, or if the job is being forgotten. The
 * task's dependents were reclaimed before, so only targets and other jobs still refer to the
 * task. */
static void reclaim_task(struct mr_sched *s, uint32_t task)
{
    struct task *t = &s->tasks[task];
    bool is_forgetting = job_at(s, t)->flags & J_FORGETTING, goes = is_forgetting;
    if (is_unfinished(t)) {
        mr_sched__task_unqueue(s, task);
        mr_sched__task_cancel_sent(s, task);
        t->refs = REF_NONE;
        mr_sched__task_move(s, task, MR_TASK_CANCELLED);
    } else if (is_done(t)) {
        t->consumers = mr_sched__ref_count(s, task);
        goes |= !t->consumers && !(t->flags & (T_TARGET | T_FIXED));
        goes |= mr_sched__is_broken(s, task);
    }
    if (goes && is_done(t) && t->value < LITERAL) {
        mr_sched__value_release(s, t->value, false);
        t->refs = REF_NONE;
        if (!(t->flags & T_FIXED)) mr_sched__task_move(s, task, MR_TASK_RELEASED);
    }
    if (is_forgetting) mr_sched__failure_drop(s, task);
}

static void reclaim_ends(struct mr_sched *s, uint32_t job)
{
    uint32_t at = 0;
    while (s->job_list.reclaims[at] != job)
        at++;
    s->job_list.reclaims[at] = s->job_list.reclaims[--s->job_list.reclaims_count];
    s->jobs[job].flags &= ~(uint32_t)J_RECLAIMING;
}

void mr_sched__job_reclaim(struct mr_sched *s, uint32_t tasks_max)
{
    while (s->job_list.reclaims_count && tasks_max) {
        uint32_t job = s->job_list.reclaims[s->job_list.reclaims_count - 1];
        struct job *j = &s->jobs[job];
        uint32_t end = j->unreclaimed - MR_MIN(j->unreclaimed, tasks_max);
        tasks_max -= j->unreclaimed - end;
        while (j->unreclaimed > end)
            reclaim_task(s, j->base + --j->unreclaimed);
        if (end) break;
        /* reclaim_task may have put other jobs into the list, behind this job */
        reclaim_ends(s, job);
        if (j->flags & J_FORGETTING) mr_sched__job_drop(s, job);
    }
}

static void reclaim_finish(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    if (!(j->flags & J_RECLAIMING)) return;
    while (j->unreclaimed)
        reclaim_task(s, j->base + --j->unreclaimed);
    reclaim_ends(s, job);
}

static int retry(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    reclaim_finish(s, job);
    int err = mr_sched__shared_key_retry(s, job);
    if (err) return err;
    j->flags &= ~(uint32_t)(J_STOPPED | J_UNWANTED);
    j->flags |= J_RETRIED;
    /* a worker that registers again may have values of this job */
    if (s->is_recovering) j->flags |= J_HELD_BACK;
    mr_sched__failure_fini(&j->failure);
    j->has_failure = false;
    mr_sched__failure_drop_job(s, job);
    j->fallen = j->targets_failed = 0;
    j->state = MR_JOB_RUNNING;
    j->finished_wall = 0;
    mr_sched__slots_begin(s, j);
    s->job_list.running++;
    /* If no other job runs, no report of progress is due yet. */
    s->due.progress = MR_MIN(s->due.progress, s->now);
    if (j->graph->job.deadline) j->deadline = mr_time_after(s->now, j->graph->job.deadline);
    s->due.jobs = MR_MIN(s->due.jobs, j->deadline);
    mr_sched__journal_state(s, job);
    mr_sched__loop_again(s, job);
    mr_sched__plan(s, job);
    mr_sched__shared_key_settle(s, job);
    if (!j->targets_left) mr_sched__job_end(s, job, MR_JOB_DONE);
    return MR_OK;
}

static void cancel(struct mr_sched *s, uint32_t job, struct mr_str reason)
{
    struct job *j = &s->jobs[job];
    if (j->state >= MR_JOB_DONE) return;
    if (!j->has_failure) {
        struct mr_str why = reason.n ? reason : mr_str("cancelled on request");
        struct failure st = mr_sched__failure_make(s, j->base, 1, why, NULL);
        st.attempts = st.op = 0;
        j->failure = st;
        j->failure.task = NONE;
        j->has_failure = true;
    }
    mr_sched__job_end(s, job, MR_JOB_CANCELLED);
}

/* Performs the request and returns NULL, or returns the reason for a refusal. A repeated request
 * changes nothing, so a client that got no answer may repeat it. */
static const char *change(struct mr_sched *s, uint32_t job, const struct mr_sched_event *ev)
{
    const struct job *j = &s->jobs[job];
    bool is_running = j->state < MR_JOB_DONE;
    if (ev->type == MR_SCHED_CANCEL) {
        cancel(s, job, ev->text);
        return NULL;
    }
    if (ev->type == MR_SCHED_RETRY) {
        bool is_over = j->state == MR_JOB_FAILED || j->state == MR_JOB_CANCELLED;
        if (is_over && retry(s, job))
            return "a key of its namespace that it refers to is not there any more";
        if (is_over || j->flags & J_RETRIED) return NULL;
        return is_running ? "the job has not ended; cancel it first"
                          : "the job is done; there is nothing to retry";
    }
    if (is_running) return "the job has not ended; cancel it first";
    if (!mr_sched__shared_key_is_held(s, job)) {
        mr_sched__job_forget(s, job);
        return NULL;
    }
    if (mr_sched__shared_key_forget_all(s, job)) return NULL;
    return "another job of its namespace uses its keys; forget that first";
}

void mr_sched__job_request(struct mr_sched *s, const struct mr_sched_event *ev)
{
    uint32_t job = mr_sched__job_find(s, ev->job.v);
    bool was_forgotten = ev->type == MR_SCHED_FORGET && mr_sched__job_forgotten(s, ev->job);
    if (is_crowded(s, ev->ticket, ev->job)) return;
    if (job == NONE && !was_forgotten) {
        mr_sched__reply(s, ev->ticket, ev->job, MR_ENOENT, "there is no such job");
        return;
    }
    const char *why = job == NONE ? NULL : change(s, job, ev);
    if (why)
        mr_sched__reply(s, ev->ticket, ev->job, MR_ESTATE, why);
    else
        promise_reply(s, ev->job.v, ev->ticket);
}

static void want_failed(
    struct mr_sched *s, const struct mr_sched_event *ev, int code, const char *why)
{
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_TARGET_FAILED);
    n->job = ev->job;
    n->index = ev->index;
    n->code = code;
    mr_sched__note_text(s, n, why);
}

void mr_sched__job_want(struct mr_sched *s, const struct mr_sched_event *ev)
{
    uint32_t job = mr_sched__job_find(s, ev->job.v);
    if (job == NONE || ev->index >= s->jobs[job].graph->nodes_count) {
        want_failed(s, ev, MR_ENOENT, "there is no such job or key");
        return;
    }
    struct job *j = &s->jobs[job];
    uint32_t task = j->base + ev->index;
    struct task *t = &s->tasks[task];
    if (!(t->flags & T_TARGET)) {
        want_failed(s, ev, MR_ENOENT, "the key is not a target of its job");
    } else if (is_done(t)) {
        bool is_away = t->value < LITERAL && s->values[t->value].kind == V_AWAY;
        if (is_away)
            mr_sched__send_fetch(s, task);
        else if (!(t->flags & T_UNACKED))
            mr_sched__note_ready(s, task);
    } else if (t->state == MR_TASK_RELEASED && !(j->flags & J_STOPPED)) {
        mr_sched__task_again(s, task); /* the value was lost after the job had ended */
    } else if (!is_unfinished(t) || j->flags & J_STOPPED) {
        want_failed(s, ev, MR_ESTATE, "the job ended without a value for this key");
    }
}

void mr_sched__job_deadlines(struct mr_sched *s)
{
    if (s->now < s->due.jobs) return;
    s->due.jobs = MR_NEVER;
    for (uint32_t i = 0; i < s->job_list.top; i++) {
        struct job *j = &s->jobs[i];
        if (!j->id || j->state >= MR_JOB_DONE) continue;
        if (j->deadline > s->now) {
            s->due.jobs = MR_MIN(s->due.jobs, j->deadline);
            continue;
        }
        struct failure st = mr_sched__failure_make(
            s, j->base, 4, mr_str("the job's deadline (deadline_s) has passed"), NULL);
        st.attempts = st.op = 0;
        if (!j->has_failure) {
            j->failure = st;
            j->failure.task = NONE;
            j->has_failure = true;
        } else {
            mr_sched__failure_fini(&st);
        }
        mr_sched__job_end(s, i, MR_JOB_FAILED);
    }
}

/* Forgets ended jobs that are too old or too many, the oldest first. */
void mr_sched__job_keep(struct mr_sched *s)
{
    uint32_t ended = s->job_list.count - s->job_list.running, budget = DROP_AT_ONCE, next;
    for (uint32_t i = s->job_list.oldest; i != NONE && budget; i = next, budget--) {
        const struct job *j = &s->jobs[i];
        next = j->newer;
        if (j->state < MR_JOB_DONE || j->announced < MR_JOB_DONE || j->users) continue;
        bool is_old =
            s->config.keep_jobs && mr_time_after(j->ended_at, s->config.keep_jobs) <= s->now;
        if (!is_old && ended <= s->config.keep_jobs_max) return;
        mr_sched__job_forget(s, i);
        ended--;
    }
}
