/* Completions: the rows in which workers report how attempts ended. The first success of an
 * unfinished task counts, from whichever attempt. Each later success of the task is answered with a
 * release. Any other outcome counts only if it is of the task's last attempt and comes from the
 * worker that has the task; else the row is late and ignored. */
#include "services/scheduler/core/cluster/completion.h"

#include "base/assert.h"
#include "services/scheduler/core/cluster/store_grace.h"
#include "services/scheduler/core/cluster/task_refs.h"
#include "services/scheduler/core/index/load_index.h"
#include "services/scheduler/core/index/retry_rings.h"
#include "services/scheduler/core/place/memory_order.h"
#include "services/scheduler/core/place/memory_retry.h"
#include "services/scheduler/core/place/place.h"
#include "services/scheduler/core/state/batch.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/fused.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/shared_key.h"
#include "services/scheduler/core/task/task.h"
#include "services/scheduler/core/task/value.h"
#include "services/scheduler/core/task/value_delivery.h"

#include <stdio.h>

struct row { /* one row of Completed (session.proto) */
    uint32_t worker;
    uint32_t at;
    uint64_t job;
    uint32_t index, attempt;
    uint32_t inline_bytes;
    const unsigned char *bytes;
    mr_object_id object;
    uint64_t object_bytes;
    const struct mr_ws_completed *c;
};

/* Returns why the task waited after it was ready. A task with demands waits for the workers that
 * meet them, and a task whose operator some workers lack waits for the other workers. Quarantined
 * tasks run alone. Tasks that had too little memory wait for more. */
static enum mr_sched_held held_of(const struct mr_sched *s, const struct task *t)
{
    bool has_demands = t->class >= s->config.ops_max || t->flags & (T_LONG | T_QUARANTINED);
    if (has_demands || (t->was_held && !mr_sched__all_may_run(s, t)))
        return MR_SCHED_HELD_RESTRICTED;
    return t->was_held || t->oom_retries ? MR_SCHED_HELD_MEMORY : MR_SCHED_HELD_NOT;
}

/* Sets what the worker measured of the attempt. */
static void span_measured(struct mr_sched_span *p, const struct row *r)
{
    const struct mr_ws_completed *c = r->c;
    if (c->input_ns) p->input_ns = c->input_ns[r->at];
    if (c->output_ns) p->output_ns = c->output_ns[r->at];
    if (c->late_ns) p->late_ns = c->late_ns[r->at];
    if (c->delayed_ns) p->delayed_ns = c->delayed_ns[r->at];
    if (c->room_ns) p->room_ns = c->room_ns[r->at];
    if (c->restore_ns) p->restore_ns = c->restore_ns[r->at];
    if (c->training) p->training = c->training[r->at];
    mr_duration waited = c->waited_ns ? c->waited_ns[r->at] : 0;
    if (waited) p->inputs = p->started - MR_MIN(waited, p->started);
}

static void span(struct mr_sched *s, const struct row *r, uint32_t task, uint32_t outcome)
{
    const struct task *t = &s->tasks[task];
    struct op *o = &s->ops[s->classes[t->class].op];
    struct mr_sched_span *p = mr_buf_extend(&s->fx->spans, sizeof *p);
    mr_assert(p);
    *p = (struct mr_sched_span){.job = {r->job},
        .index = r->index,
        .attempt = r->attempt,
        .op = s->classes[t->class].op,
        .worker = r->worker,
        .outcome = outcome,
        .accounted = s->now,
        .slot = column(r->c->slot, r->at)};
    bool is_last = t->attempt == r->attempt;
    p->last_input = r->index;
    if (is_last) mr_sched__span_ready(s, t, p);
    if (is_last) p->sent = sent_at(s, t, 0);
    if (!r->c->started_ns || !r->c->duration_ns) return;
    uint64_t its = r->c->base_ns + r->c->started_ns[r->at];
    uint64_t ns = r->c->duration_ns[r->at];
    p->started = its + (uint64_t)mr_sched__clock_offset(s, r->worker);
    /* the task became ready when its worker began it: the task before it in the same fused run
     * (tasks that a worker runs in one go) made it ready */
    if (!p->ready && p->sent) p->ready = p->started;
    p->finished = p->started + ns;
    if (is_last) p->sent = sent_at(s, t, p->started);
    if (r->c->cpu_ns) p->cpu_ns = r->c->cpu_ns[r->at];
    if (is_last) p->held = held_of(s, t);
    span_measured(p, r);
    if (outcome != MR_OUTCOME_OK) return;
    p->bytes = r->inline_bytes ? r->inline_bytes : r->object_bytes;
    o->tasks++;
    o->wall_ns += ns;
    o->cpu_ns += p->cpu_ns;
    o->bytes += p->bytes;
    o->large_bytes = o->bytes < o->tasks * LARGE_RESULT ? 0 : o->bytes / o->tasks;
    if (p->started > p->ready && p->ready) o->queue_ns += p->started - p->ready;
    if (!o->estimate_ns)
        o->estimate_ns = MR_MAX(ns, 1u);
    else
        o->estimate_ns = MR_MAX(o->estimate_ns - o->estimate_ns / 8 + ns / 8, 1u);
}

/* Reports the span of an attempt that ran but does not count: the worker was told to stop the
 * attempt, or another attempt was first. */
static void span_late(struct mr_sched *s, const struct row *r, uint32_t task, uint32_t outcome)
{
    bool has_run = r->c->started_ns && r->c->duration_ns && r->c->duration_ns[r->at];
    if (!has_run || s->is_adopting || r->attempt > s->tasks[task].attempt) return;
    bool has_made = outcome == MR_OUTCOME_OK || outcome == MR_OUTCOME_USED_UP;
    span(s, r, task, has_made ? MR_OUTCOME_CANCELLED : outcome);
}

static void answer_release(struct mr_sched *s, const struct row *r)
{
    if (s->workers[r->worker].state != W_CONNECTED) return;
    struct mr_sched_batch *b = mr_sched__batch(s, r->worker);
    mr_sched__refs_add(&b->release, r->job, r->index, r->attempt);
    b->frees_objects = b->frees_objects || !r->inline_bytes;
}

static void fill(struct mr_sched *s, uint32_t value, const struct row *r)
{
    struct value *v = &s->values[value];
    v->attempt = r->attempt;
    if (r->inline_bytes) {
        mr_sched__value_set_inline(s, v, mr_str_of(r->bytes, r->inline_bytes));
    } else {
        v->kind = V_OBJECT;
        v->object = r->object;
        v->bytes = r->object_bytes;
        v->store = (uint16_t)s->workers[r->worker].store;
    }
}

/* Passes the bytes of a target's value to the clients that wait for them, even if the cache of
 * small values is full. */
static void tell_bytes(struct mr_sched *s, uint32_t task, const struct row *r)
{
    struct mr_sched_note *n = mr_sched__note(s, MR_NOTE_TARGET_BYTES);
    n->job = (mr_job_id){r->job};
    n->index = index_of(s, task);
    n->text_at = (uint32_t)s->fx->text.n;
    n->text_bytes = r->inline_bytes;
    mr_buf_add(&s->fx->text, r->bytes, r->inline_bytes);
}

/* Handles a worker's answer to a fetch. The bytes go to dependents that were already sent, to
 * clients and to the cache. */
static void fetched(struct mr_sched *s, uint32_t task, const struct row *r)
{
    struct task *t = &s->tasks[task];
    uint32_t value = t->value;
    struct value *v = &s->values[value];
    v->flags &= (uint8_t)~V_FETCHING;
    if (v->kind != V_AWAY) return;
    uint32_t keeper = v->worker;
    fill(s, value, r);
    bool is_cached = v->kind != V_AWAY;
    const struct job *j = job_of(s, task);
    uint32_t n;
    const uint32_t *d = mr_graph_dependents(j->graph, r->index, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct task *u = &s->tasks[j->base + d[i]];
        if (!is_unfinished(u) || !(u->flags & T_SENT) || u->worker == keeper) continue;
        if (!mr_sched__is_edge(s, task, j->base + d[i])) continue;
        if (is_cached)
            mr_sched__send_value(s, task, u->worker);
        else
            mr_sched__send_bytes(s, task, u->worker, mr_str_of(r->bytes, r->inline_bytes));
    }
    if (t->flags & T_TARGET) tell_bytes(s, task, r);
    if (t->flags & T_HAS_SHARERS)
        mr_sched__shared_key_done(s, task, mr_str_of(r->bytes, r->inline_bytes));
}

/* True: the row reports an object that an earlier attempt made, and its worker was sent the task
 * again. The worker drops the object when it receives the new attempt. */
static bool is_outdated(const struct task *t, const struct row *r)
{
    return !r->inline_bytes && t->flags & T_SENT && t->worker == r->worker &&
           t->attempt > r->attempt;
}

/* Fails the `until` task of a loop, because its value is neither a boolean nor a number. `what`
 * names the value's kind. */
static void until_failed(struct mr_sched *s, uint32_t task, const struct row *r, const char *what)
{
    struct mr_str key = mr_graph_key(job_of(s, task)->graph, index_of(s, task));
    char text[MR_ERROR_TEXT_MAX];
    (void)snprintf(text, sizeof text,
        "\"%.*s\" is the \"until\" of its loop, and became %s; it must be true, false or a number",
        (int)MR_MIN(key.n, (size_t)200), key.p, what);
    span(s, r, task, MR_OUTCOME_ERROR);
    answer_release(s, r);
    if (s->tasks[task].flags & T_SENT) mr_sched__task_unsend(s, task);
    struct failure st =
        mr_sched__failure_make(s, task, 9, mr_str(text), s->workers[r->worker].facts->name);
    mr_sched__task_fail(s, task, &st);
    mr_sched__failure_fini(&st);
}

static void row_ok(struct mr_sched *s, uint32_t task, const struct row *r)
{
    struct task *t = &s->tasks[task];
    const struct job *j = job_at(s, t);
    if (is_done(t) && t->value < LITERAL) {
        const struct value *v = &s->values[t->value];
        if (v->worker == r->worker && v->attempt == r->attempt) {
            if (v->flags & V_FETCHING) fetched(s, task, r);
            return; /* the worker reported the same value twice */
        }
    }
    if (!is_unfinished(t) || j->flags & J_STOPPED) {
        span_late(s, r, task, MR_OUTCOME_OK);
        answer_release(s, r);
        return;
    }
    bool is_sent_here = is_current(t, r->worker, r->attempt);
    if (!s->is_adopting &&
        (is_outdated(t, r) || (!is_sent_here && mr_sched__is_referring(s, task)))) {
        /* the object is outdated, or the value may refer to values that are gone: the worker may
         * drop its copy */
        answer_release(s, r);
        return;
    }
    if (t->flags & T_SENT && !is_sent_here) mr_sched__task_cancel_sent(s, task);
    const char *what =
        t->is_until ? mr_sched__loop_complaint(mr_str_of(r->bytes, r->inline_bytes)) : NULL;
    if (what) {
        until_failed(s, task, r, what);
        return;
    }
    span(s, r, task, MR_OUTCOME_OK);
    if (r->attempt > t->attempt) t->attempt = r->attempt;
    uint32_t value = mr_sched__value_new(s, task);
    fill(s, value, r);
    mr_sched__value_keep(s, value, r->worker);
    mr_sched__value_hold(s, &s->values[value]);
    t->kills = t->probations = t->oom_retries = 0;
    t->flags = (uint16_t)(t->flags & ~(T_QUARANTINED | T_WAS_NEAR_CRASH));
    s->totals.tasks_done++;
    s->workers[r->worker].is_full = false;
    s->passing = mr_str_of(r->bytes, r->inline_bytes);
    mr_sched__task_done(s, task, is_sent_here ? r->worker : NONE);
    s->passing = (struct mr_str){0};
    mr_sched__memory_order_look(
        s, task, r->worker, r->inline_bytes ? r->inline_bytes : r->object_bytes);
}

/* True: `t` is a target of a job that is DONE, but the scheduler has lost the value of `t`. For
 * example, the cache had no room for the value while the journal was replayed. If the registering
 * worker still has the value, `t` need not run again when a client asks for the value. */
static bool is_lost_target(const struct task *t, const struct job *j)
{
    return t->state == MR_TASK_RELEASED && t->flags & T_TARGET && !t->consumers &&
           !(j->flags & (J_STOPPED | J_FORGETTING));
}

/* True: the values to which the row's value refers exist. During recovery the scheduler assumes
 * that they exist, and mr_sched__ref_settle checks them when recovery ends. */
static bool may_refer(const struct mr_sched *s, uint32_t task, const struct row *r)
{
    const struct task *t = &s->tasks[task];
    if (!is_unfinished(t) || t->flags & T_SHARED) return false;
    return s->is_recovering || is_current(t, r->worker, r->attempt);
}

/* Handles a value that a registering worker still has. The scheduler adopts the value of an
 * unfinished task, and a value that the task has already. It also adopts a value that the replay of
 * the journal released although the value is still needed. The worker keeps an adopted value and
 * releases any other value. */
static void adopt_row(
    struct mr_sched *s, uint32_t task, const struct row *r, struct mr_sched_refs_out *adopt)
{
    struct task *t = &s->tasks[task];
    const struct job *j = job_at(s, t);
    if (is_done(t) && t->value < LITERAL) {
        struct value *v = &s->values[t->value];
        bool is_same = v->worker == r->worker && v->attempt == r->attempt;
        if (!is_same && v->kind == V_OBJECT && !r->inline_bytes)
            is_same = mr_object_id_eq(v->object, r->object);
        if (!is_same && v->worker == NONE && r->inline_bytes && v->kind != V_OBJECT)
            is_same = true; /* the value was replayed from the journal, and this worker has it */
        if (!is_same) return;
        if (v->worker == NONE) mr_sched__value_keep(s, t->value, r->worker);
        v->attempt = r->attempt;
        t->flags |= T_SEEN;
    } else if (mr_sched__is_by_reference(s, task) && !may_refer(s, task, r)) {
        return;
    } else if (is_unfinished(t) && !(j->flags & J_STOPPED)) {
        row_ok(s, task, r);
        if (!is_done(t)) return; /* nothing needs the value */
        t->flags |= T_SEEN;
    } else if (is_lost_target(t, j) ||
               (r->inline_bytes && !(j->flags & J_STOPPED) && mr_sched__is_part(s, task))) {
        uint32_t value = mr_sched__value_new(s, task);
        fill(s, value, r);
        mr_sched__value_keep(s, value, r->worker);
        mr_sched__value_hold(s, &s->values[value]);
        mr_sched__task_move(s, task, MR_TASK_WAITING);
        mr_sched__task_move(s, task, MR_TASK_DONE);
        mr_sched__ref_again(s, task);
        t->flags |= T_SEEN;
    } else {
        return;
    }
    mr_sched__refs_add(adopt, r->job, r->index, r->attempt);
}

static const struct mr_ws_failure *failure_of(const struct row *r)
{
    for (uint32_t i = 0; i < r->c->failures_count; i++)
        if (r->c->failures[i].row == r->at) return &r->c->failures[i];
    return NULL;
}

/* Makes the failure that a row reports, with copies of the texts. */
static struct failure make_failure(struct mr_sched *s, uint32_t task, const struct row *r)
{
    struct mr_str none = {0}, message = mr_str("the worker gave no reason"), args = none,
                  log = none;
    int code = 2;
    const struct mr_ws_failure *f = failure_of(r);
    if (f) {
        code = f->code;
        message = f->message;
        args = f->arguments;
        log = f->log;
    }
    struct failure st =
        mr_sched__failure_make(s, task, code, message, s->workers[r->worker].facts->name);
    mr_sched__failure_more(&st, args, log);
    return st;
}

static void row_failed(struct mr_sched *s, uint32_t task, const struct row *r, uint32_t outcome)
{
    struct task *t = &s->tasks[task];
    span(s, r, task, outcome);
    mr_sched__task_unsend(s, task);
    if (outcome != MR_OUTCOME_BAD_ARGUMENT && t->retries_left) {
        t->retries_left--;
        job_at(s, t)->retried++;
        mr_sched__task_requeue(s, task);
        return;
    }
    struct failure st = make_failure(s, task, r);
    mr_sched__task_fail(s, task, &st);
    mr_sched__failure_fini(&st);
}

/* Handles an attempt that failed because of a store: retries the task, or fails it with the reason
 * that the worker gave. */
static void row_without_store(struct mr_sched *s, uint32_t task, const struct row *r)
{
    span(s, r, task, MR_OUTCOME_LOST_INPUT);
    mr_sched__task_unsend(s, task);
    if (mr_sched__store_may_return(s, task)) {
        job_of(s, task)->retried++;
        mr_sched__task_requeue(s, task);
        return;
    }
    struct failure st = make_failure(s, task, r);
    mr_sched__task_fail(s, task, &st);
    mr_sched__failure_fini(&st);
}

static void row_no_room(struct mr_sched *s, uint32_t task, const struct row *r, uint32_t outcome)
{
    struct failure st = make_failure(s, task, r);
    span(s, r, task, outcome);
    mr_sched__memory_retry_refused(s, task, r->worker, mr_str(st.message));
    mr_sched__failure_fini(&st);
}

/* Marks the task as consumed in a fused run: the worker ran the task and the consumers of its value
 * in one go (task/fused.c). The rows of the task's consumers follow. */
static void consumed(struct mr_sched *s, uint32_t task, const struct row *r)
{
    span(s, r, task, MR_OUTCOME_OK);
    s->totals.tasks_done++;
    s->workers[r->worker].is_full = false;
    if (s->tasks[task].flags & T_STEALING) s->workers[r->worker].stealing--;
    s->tasks[task].flags = (uint16_t)(s->tasks[task].flags & ~T_STEALING);
    mr_sched__fused_consumed(s, task);
}

static void row_not_ok(struct mr_sched *s, uint32_t task, const struct row *r, uint32_t outcome)
{
    /* the row is not about the task's last attempt */
    if (!is_current(&s->tasks[task], r->worker, r->attempt)) {
        span_late(s, r, task, outcome);
        return;
    }
    switch ((enum mr_outcome)outcome) {
    case MR_OUTCOME_ERROR:
    case MR_OUTCOME_TIMEOUT:
    case MR_OUTCOME_BAD_ARGUMENT: row_failed(s, task, r, outcome); return;
    case MR_OUTCOME_RETURNED:
    case MR_OUTCOME_LOST_INPUT:
        /* the worker gets no tasks until its next success or heartbeat */
        s->workers[r->worker].is_full = true;
        if (outcome != MR_OUTCOME_LOST_INPUT || !failure_of(r)) break;
        row_without_store(s, task, r);
        return;
    case MR_OUTCOME_NO_ROOM: row_no_room(s, task, r, outcome); return;
    case MR_OUTCOME_USED_UP: consumed(s, task, r); return;
    case MR_OUTCOME_CANCELLED: span_late(s, r, task, outcome); break;
    case MR_OUTCOME_LOST: /* workers do not report this outcome */
    case MR_OUTCOME_OK: break;
    }
    mr_sched__task_unsend(s, task);
    mr_sched__task_requeue(s, task);
}

/* True: the row reports the end of an attempt that the worker was told to stop. A worker reports
 * the end of each such attempt once, with any outcome. */
static bool is_late(const struct mr_sched *s, uint32_t task, const struct row *r)
{
    if (task == NONE) return true;
    const struct task *t = &s->tasks[task];
    if (is_current(t, r->worker, r->attempt)) return false;
    if (!is_done(t) || t->value >= LITERAL) return true;
    const struct value *v = &s->values[t->value];
    /* a row for the attempt whose value the worker keeps is not late: it answers a fetch */
    return v->worker != r->worker || v->attempt != r->attempt;
}

/* Reads the rows in the worker's order: a task that was consumed in a fused run (task/fused.c)
 * comes before its consumers. The worker's bucket in the load index changes only once, after all
 * rows. For each row, the span is written first, while the task still has the times of the attempt.
 * Then the value is recorded with its worker and store, because mr_sched__task_done reads them. The
 * consequences for the task and its dependents come last. */
void mr_sched__completed(struct mr_sched *s, uint32_t worker, const struct mr_ws_completed *c,
    struct mr_sched_refs_out *adopt)
{
    struct cursor cur = {.r = &c->tasks};
    struct row r = {.worker = worker, .c = c};
    size_t inline_at = 0;
    uint32_t object_at = 0;
    s->is_adopting = adopt != NULL;
    s->load.held_out = worker; /* the worker keeps its bucket until all rows are read */
    for (uint32_t i = 0; i < c->tasks.count; i++) {
        cursor_next(s, &cur);
        uint32_t outcome = column(c->outcome, i);
        r.at = i;
        r.job = cur.id;
        r.index = c->tasks.index[i];
        r.attempt = column(c->tasks.attempt, i);
        r.inline_bytes = column(c->inline_bytes, i);
        r.bytes = (const unsigned char *)c->inlined.p + inline_at;
        inline_at += r.inline_bytes;
        bool is_ok = outcome == MR_OUTCOME_OK;
        if (is_ok && !r.inline_bytes) {
            /* cannot happen: mr_ws_up_check has checked that each such row has an object */
            if (object_at >= c->objects_count) break;
            r.object = (mr_object_id){c->object_maker[object_at], c->object_number[object_at]};
            r.object_bytes = c->object_bytes[object_at++];
        }
        uint32_t task = task_at(s, cur.job, r.index);
        if (!adopt && is_late(s, task, &r))
            mr_sched__stopping_end(s, worker, mr_sched__stopping_mark(r.job, r.index, r.attempt));
        if (task == NONE) {
            if (is_ok && !adopt) answer_release(s, &r);
        } else if (adopt) {
            adopt_row(s, task, &r, adopt);
        } else if (is_ok) {
            row_ok(s, task, &r);
        } else {
            row_not_ok(s, task, &r, outcome);
        }
    }
    s->is_adopting = false;
    s->load.held_out = NONE;
    mr_sched__load_changed(s, worker, false);
}
