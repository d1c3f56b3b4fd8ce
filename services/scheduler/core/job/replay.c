/* Replays the journal after a restart: records become jobs, values, failures and workers. A
 * replayed worker is unrecovered until it registers again or its lease ends. Until no worker is
 * unrecovered, no task of the replayed jobs is sent, because a worker may still have it or its
 * value. The journal is outside data: a record that cannot be read is skipped. */
#include "services/scheduler/core/job/replay.h"

#include "base/alloc.h"
#include "graph/bytes/bytes.h"
#include "services/scheduler/core/cluster/recovery.h"
#include "services/scheduler/core/cluster/store.h"
#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/index/op_index.h"
#include "services/scheduler/core/index/worker_index.h"
#include "services/scheduler/core/job/plan.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/epoch.h"
#include "services/scheduler/core/task/job_state.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"

#include <string.h>

struct reader {
    const char *p;
    size_t n;
    bool is_bad;
};

static const char *take(struct reader *r, size_t n)
{
    if (r->n < n) {
        r->is_bad = true;
        r->n = 0;
        return NULL;
    }
    const char *p = r->p;
    r->p += n;
    r->n -= n;
    return p;
}

static uint64_t take_int(struct reader *r, size_t bytes)
{
    uint64_t v = 0;
    const char *p = take(r, bytes);
    /* state/record.c writes numbers in the machine's order, little-endian */
    if (p) memcpy(&v, p, bytes);
    return v;
}

static uint32_t u32(struct reader *r)
{
    return (uint32_t)take_int(r, 4);
}

static uint64_t u64(struct reader *r)
{
    return take_int(r, 8);
}

static struct mr_str text(struct reader *r)
{
    size_t n = u32(r);
    const char *p = take(r, n);
    return p ? mr_str_of(p, n) : (struct mr_str){0};
}

static void replay_graph(struct mr_sched *s, struct reader *r)
{
    uint64_t id = u64(r), at = u64(r);
    if (r->is_bad) return;
    if (!at || id != s->replay.job) mr_buf_clear(&s->replay.graph);
    s->replay.job = id;
    if (at == s->replay.graph.n) mr_buf_add(&s->replay.graph, r->p, r->n);
}

/* Counts an accepted job that cannot be restored and is therefore skipped.
 * services/scheduler/base/journal_link.c logs the job and the reason. */
static void leave_out(struct mr_sched *s, uint64_t id, const struct mr_error *why)
{
    s->replay.unread_count++;
    s->replay.unread_job = id;
    s->replay.unread_why = *why;
}

static uint32_t replay_job(struct mr_sched *s, uint64_t id, uint64_t bytes)
{
    struct mr_graph *graph = NULL;
    struct mr_error e = {0};
    int err = MR_OK;
    if (s->replay.job != id || s->replay.graph.n != bytes)
        err = mr_fail(&e, MR_ELOST, "its graph is incomplete");
    if (!err) err = mr_graph_from_bytes(mr_buf_str(&s->replay.graph), &graph, &e);
    mr_buf_clear(&s->replay.graph);
    uint32_t job = err ? NONE : mr_sched__job_add(s, id, &graph, &e);
    mr_graph_free(&graph);
    if (job == NONE) leave_out(s, id, &e);
    return job;
}

static void replay_accepted(struct mr_sched *s, struct reader *r)
{
    uint64_t id = u64(r), bytes = u64(r), created = u64(r), parent = u64(r);
    mr_graph_hash body = {.hi = u64(r)};
    body.lo = u64(r);
    uint32_t n = u32(r);
    if (mr_sched__job_find(s, id) != NONE) return;
    if (r->is_bad || r->n != (uint64_t)n * 36) {
        struct mr_error e = {0};
        (void)mr_fail(&e, MR_EFORMAT, "its record is damaged");
        leave_out(s, id, &e);
        return;
    }
    uint32_t job = replay_job(s, id, bytes);
    if (job == NONE) return;
    struct mr_sched_resolved *resolved = mr_alloc_array(n, sizeof *resolved);
    for (uint32_t i = 0; i < n; i++) {
        resolved[i].index = u32(r);
        resolved[i].object.maker = u64(r);
        resolved[i].object.number = u64(r);
        resolved[i].bytes = u64(r);
        resolved[i].store = u64(r);
    }
    struct job *j = &s->jobs[job];
    (void)mr_sched__resolve(s, job, resolved, n, NULL);
    mr_release(resolved);
    j->created_wall = created;
    j->parent = parent;
    j->body_hash = body;
    j->flags |= J_ACCEPTED;
    j->announced = MR_JOB_PENDING;
}

static void replay_value(struct mr_sched *s, struct job *j, struct reader *r)
{
    uint32_t index = u32(r), mark = u32(r), n = u32(r), attempt = mark & ~RECORD_REFERS;
    mr_object_id object = {0, 0};
    uint64_t bytes = 0, store = 0;
    const char *p = NULL;
    if (n) {
        p = take(r, n);
    } else {
        object.maker = u64(r);
        object.number = u64(r);
        bytes = u64(r);
        store = u64(r);
    }
    if (r->is_bad || index >= j->graph->nodes_count) return;
    struct task *t = &s->tasks[j->base + index];
    if (t->state == MR_TASK_RELEASED || t->value == LITERAL) return;
    if (t->value != NONE) { /* the value was lost and computed again: the last record counts */
        if (t->flags & T_FIXED && !mr_sched__is_alias(s, j->base + index)) return;
        mr_sched__value_release(s, t->value, true);
    }
    uint32_t v = mr_sched__value_new(s, j->base + index);
    t->refs = REF_NONE;
    if (mark & RECORD_REFERS) {
        t->refs = REF_VALUES;
        j->flags |= J_REFERS;
    }
    s->values[v].attempt = attempt;
    t->attempt = MR_MAX(t->attempt, attempt);
    if (!is_done(t)) mr_sched__task_move(s, j->base + index, MR_TASK_DONE);
    if (n) {
        mr_sched__value_set_inline(s, &s->values[v], mr_str_of(p, n));
    } else {
        s->values[v].kind = V_OBJECT;
        s->values[v].object = object;
        s->values[v].bytes = bytes;
        s->values[v].store = (uint16_t)mr_sched__store(s, store, (struct mr_str){0});
    }
    if (s->values[v].kind != V_AWAY) return;
    /* The cache of small values has no room for this value, so the value is lost. Its task may run
     * again: if its running job needs the value, or when a client asks a done job for the value. */
    mr_sched__value_release(s, v, true);
    /* T_FIXED: the node is an alias, which only refers to a key of another job. Its state stays as
     * it is: at the end of the replay, shared_key.c settles aliases that have no value. */
    if (t->flags & T_FIXED) return;
    mr_sched__task_move(s, j->base + index, MR_TASK_RELEASED);
    t->refs = REF_NONE;
}

static void replay_values(struct mr_sched *s, struct reader *r)
{
    uint32_t job = mr_sched__job_find(s, u64(r));
    while (job != NONE && r->n && !r->is_bad)
        replay_value(s, &s->jobs[job], r);
}

/* A failure whose texts are inside the record: they are valid while the record is. */
struct lent_failure {
    struct mr_str op, message, arguments, worker, log;
    int code;
    uint32_t attempts;
};

static struct lent_failure lent(struct reader *r)
{
    struct lent_failure x = {.code = (int)u32(r)};
    x.attempts = u32(r);
    x.op = text(r);
    x.message = text(r);
    x.arguments = text(r);
    x.worker = text(r);
    x.log = text(r);
    return x;
}

static struct failure make_failure(
    struct mr_sched *s, const struct job *j, uint32_t index, const struct lent_failure *x)
{
    char worker[NAME_BYTES] = "";
    if (x->worker.n) memcpy(worker, x->worker.p, MR_MIN(x->worker.n, sizeof worker - 1));
    uint32_t task = index < j->graph->nodes_count ? j->base + index : j->base;
    struct failure st =
        mr_sched__failure_make(s, task, x->code, x->message, worker[0] ? worker : NULL);
    mr_sched__failure_more(&st, x->arguments, x->log);
    st.attempts = x->attempts;
    st.op = x->op.n ? mr_sched__op(s, x->op) : 0;
    st.task = index < j->graph->nodes_count ? task : NONE;
    return st;
}

static void replay_erred(struct mr_sched *s, struct reader *r)
{
    uint32_t job = mr_sched__job_find(s, u64(r)), index = u32(r);
    struct lent_failure x = lent(r);
    if (r->is_bad || job == NONE || index >= s->jobs[job].graph->nodes_count) return;
    struct failure st = make_failure(s, &s->jobs[job], index, &x);
    mr_sched__failure_put(s, s->jobs[job].base + index, &st);
    mr_sched__failure_fini(&st);
}

static void replay_state(struct mr_sched *s, struct reader *r, uint64_t sequence)
{
    uint32_t job = mr_sched__job_find(s, u64(r)), mark = u32(r), state = mark & ~RECORD_RETRIED;
    uint64_t started = u64(r), finished = u64(r);
    uint32_t fallen = u32(r), has_error = u32(r);
    if (r->is_bad || job == NONE || state < MR_JOB_PENDING || state > MR_JOB_CANCELLED) return;
    struct job *j = &s->jobs[job];
    bool was_over = j->state >= MR_JOB_DONE, is_over = state >= MR_JOB_DONE;
    if (!was_over && is_over) s->job_list.running--;
    if (was_over && !is_over) s->job_list.running++;
    j->state = j->announced = (uint8_t)state;
    j->started_wall = started;
    j->finished_wall = finished;
    j->fallen = fallen;
    j->event_sequence = sequence;
    if (mark & RECORD_RETRIED) j->flags |= J_RETRIED;
    mr_sched__failure_fini(&j->failure);
    j->has_failure = false;
    if (was_over && !is_over) { /* the job was retried, so failed tasks may run again */
        mr_sched__loop_again(s, job);
        mr_sched__failure_drop_job(s, job);
    }
    if (has_error) {
        uint32_t index = u32(r);
        struct lent_failure x = lent(r);
        if (r->is_bad) return;
        j->failure = make_failure(s, j, index, &x);
        j->has_failure = true;
    }
    /* records that versions before 0.2 wrote end here */
    uint64_t slots_us = u64(r), ran_us = u64(r);
    if (r->is_bad) return;
    j->slots_us = slots_us;
    j->ran_us = ran_us;
}

static void replay_loop(struct mr_sched *s, struct reader *r)
{
    uint32_t job = mr_sched__job_find(s, u64(r)), loop = u32(r), at = u32(r), stop = u32(r);
    if (!r->is_bad && job != NONE) mr_sched__loop_replay(s, job, loop, at, stop);
}

static void replay_forgotten(struct mr_sched *s, struct reader *r)
{
    uint64_t id = u64(r), wall = u64(r);
    uint32_t job = mr_sched__job_find(s, id);
    if (r->is_bad) return;
    s->job_list.forgotten[s->job_list.forgotten_count++ % FORGOTTEN_MAX] =
        (struct forgotten){id, wall};
    if (job == NONE) return;
    mr_sched__failure_drop_job(s, job);
    mr_sched__job_drop(s, job);
}

static void replay_worker(struct mr_sched *s, struct reader *r, bool is_lost)
{
    uint64_t incarnation = u64(r);
    uint32_t slot = mr_sched__worker_find(s, incarnation);
    s->memory_retry.unrecovered_lost_at = s->now;
    if (is_lost) {
        if (slot == NONE) return;
        mr_sched__worker_free(s, slot);
        s->worker_list.live--;
        return;
    }
    struct mr_str name = text(r);
    if (r->is_bad || slot != NONE) return;
    slot = mr_sched__worker_place(s);
    if (slot == NONE) return;
    struct worker *w = mr_sched__worker_new(s, slot, incarnation);
    w->state = W_SILENT;
    w->is_unrecovered = true;
    w->slots = 1;
    mr_sched__worker_name(s, slot, name);
    s->worker_list.live++;
}

static void replay_store(struct mr_sched *s, struct reader *r)
{
    uint64_t incarnation = u64(r);
    struct mr_str node = text(r);
    if (!r->is_bad && incarnation && node.n) mr_sched__store_replay(s, incarnation, node);
}

void mr_sched__replay(struct mr_sched *s, uint32_t type, struct mr_str bytes, uint64_t sequence)
{
    struct reader r = {bytes.p, bytes.n, false};
    s->replay.is_active = true;
    switch (type) {
    case MR_RECORD_EPOCH: mr_sched__epoch_replay(s, u64(&r)); break;
    case MR_RECORD_GRAPH: replay_graph(s, &r); break;
    case MR_RECORD_ACCEPTED: replay_accepted(s, &r); break;
    case MR_RECORD_VALUES: replay_values(s, &r); break;
    case MR_RECORD_ERRED: replay_erred(s, &r); break;
    case MR_RECORD_JOB_STATE: replay_state(s, &r, sequence); break;
    case MR_RECORD_FORGOTTEN: replay_forgotten(s, &r); break;
    case MR_RECORD_LOOP: replay_loop(s, &r); break;
    case MR_RECORD_WORKER: replay_worker(s, &r, false); break;
    case MR_RECORD_WORKER_LOST: replay_worker(s, &r, true); break;
    case MR_RECORD_STORE: replay_store(s, &r); break;
    default: break; /* a record of a later version, or a damaged one, is skipped */
    }
    s->replay.is_active = false;
}

/* Moves the failed tasks of an ended job to the state ERRED. A task has failed if its own failure
 * was read from the journal, or if an input that it needs has failed. The loop visits inputs before
 * their dependents. */
static void settle_failed(struct mr_sched *s, struct job *j)
{
    for (uint32_t i = 0; i < j->graph->nodes_count; i++) {
        uint32_t task = j->base + i, cause = NONE, n;
        if (s->tasks[task].state != MR_TASK_NONE) continue;
        const uint32_t *in = mr_graph_inputs(j->graph, i, &n);
        if (mr_sched__failure(s, task)) cause = task;
        for (uint32_t k = 0; k < n && cause == NONE; k++) {
            const struct task *u = &s->tasks[j->base + in[k]];
            if (u->state != MR_TASK_ERRED) continue;
            if (s->tasks[task].is_exit && !mr_sched__loop_has_ref(s, task, j->base + in[k]))
                continue;
            cause = u->cause;
        }
        if (cause == NONE) continue;
        mr_sched__task_move(s, task, MR_TASK_ERRED);
        s->tasks[task].cause = cause;
    }
}

/* Settles the tasks of an ended job: a task without a value never gets one. The loop visits
 * dependents before their inputs, so that the references to an input are known when it is
 * visited. */
static void settle_ended(struct mr_sched *s, struct job *j)
{
    if (j->state == MR_JOB_FAILED) settle_failed(s, j);
    for (uint32_t i = j->graph->nodes_count; i-- > 0;) {
        uint32_t task = j->base + i;
        struct task *t = &s->tasks[task];
        t->consumers = mr_sched__ref_count(s, task);
        bool is_of_use = t->consumers || t->flags & (T_TARGET | T_FIXED);
        if (is_done(t) && !is_of_use) { /* nothing needs the value any more */
            mr_sched__value_release(s, t->value, false);
            mr_sched__task_move(s, task, MR_TASK_RELEASED);
            t->refs = REF_NONE;
        }
        if (t->state != MR_TASK_NONE) continue;
        bool has_failed = j->state != MR_JOB_DONE && mr_sched__failure(s, task);
        enum mr_task_state to = j->state == MR_JOB_DONE ? MR_TASK_RELEASED
                                : has_failed            ? MR_TASK_ERRED
                                                        : MR_TASK_CANCELLED;
        mr_sched__task_move(s, task, to);
        if (has_failed) t->cause = task;
    }
    if (j->state != MR_JOB_DONE) j->flags |= J_STOPPED;
    j->ended_at = s->now;
}

/* Fails a job that refers to a key which no job defines any more. */
static void settle_orphan(struct mr_sched *s, uint32_t job, const struct mr_error *e)
{
    struct job *j = &s->jobs[job];
    mr_sched__failure_fini(&j->failure);
    j->failure = mr_sched__failure_make(s, j->base, 9, mr_str(e->text), NULL);
    j->failure.attempts = j->failure.op = 0;
    j->failure.task = NONE;
    j->has_failure = true;
    mr_sched__job_end(s, job, MR_JOB_FAILED);
    settle_ended(s, j);
}

static void settle_running(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    uint32_t nodes = j->graph->nodes_count;
    j->flags |= J_HELD_BACK;
    j->fallen = 0; /* mr_sched__task_fail, called below, counts the fallen tasks again */
    if (j->state == MR_JOB_RUNNING) mr_sched__slots_begin(s, j);
    if (j->graph->job.deadline) {
        uint64_t end = j->created_wall + j->graph->job.deadline;
        j->deadline = end > mr_sched__wall(s) ? s->now + (end - mr_sched__wall(s)) : s->now;
        s->due.jobs = MR_MIN(s->due.jobs, j->deadline);
    }
    struct mr_error e = {0};
    if (mr_sched__shared_key_link(s, job, &e)) {
        settle_orphan(s, job, &e);
        return;
    }
    mr_sched__plan(s, job);
    mr_sched__shared_key_settle(s, job);
    for (uint32_t i = 0; i < nodes && j->state < MR_JOB_DONE; i++) {
        const struct failure *st =
            is_unfinished(&s->tasks[j->base + i]) ? mr_sched__failure(s, j->base + i) : NULL;
        if (!st) continue;
        struct failure copy;
        mr_sched__failure_copy(&copy, st);
        mr_sched__task_fail(s, j->base + i, &copy);
        mr_sched__failure_fini(&copy);
    }
    if (j->state < MR_JOB_DONE && !j->targets_left)
        mr_sched__job_end(s, job, j->targets_failed ? MR_JOB_FAILED : MR_JOB_DONE);
}

/* Marks objects as held by their stores. The stores were told to hold them before the restart, and
 * are told again when they register. So an object does not count as lost together with its
 * worker. */
static void count_as_held(struct mr_sched *s)
{
    for (uint32_t i = 0; i < s->value_list.top; i++) {
        struct value *v = &s->values[i];
        if (v->kind != V_OBJECT || !v->store) continue;
        if (s->stores[v->store].is_heir) v->flags |= V_DOUBTED;
        if (!(s->tasks[v->task].flags & T_SHARED)) v->flags |= V_HELD;
    }
}

void mr_sched__replay_end(struct mr_sched *s, uint64_t sequence)
{
    s->journal.sequence = s->journal.acked = sequence;
    s->is_recovered = true;
    s->is_recovering = true;
    mr_buf_fini(&s->replay.graph);
    for (uint32_t i = 0; i < s->worker_list.top; i++)
        if (s->workers[i].state != W_FREE) s->workers[i].last_heard = s->now;
    s->due.leases = mr_time_after(s->now, s->config.lease);
    /* jobs in order of age: a job that shares a value of another job is younger than that job */
    for (uint32_t i = s->job_list.oldest; i != NONE; i = s->jobs[i].newer) {
        struct job *j = &s->jobs[i];
        if (j->state < MR_JOB_DONE) {
            settle_running(s, i);
            continue;
        }
        settle_ended(s, j);
        j->flags |= J_HELD_BACK; /* a worker that registers again may have targets of this job */
        mr_sched__shared_key_enter(s, i);
    }
    count_as_held(s);
    mr_sched__epoch_begin(s);
    s->due.progress = s->due.keep = s->now;
    mr_sched__recover_tick(s);
}
