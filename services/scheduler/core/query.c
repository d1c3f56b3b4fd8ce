/* Reads the core's state for the shell. No function of this file changes the state. */
#include "services/scheduler/core/query.h"

#include "services/scheduler/core/index/job_index.h"
#include "services/scheduler/core/state/failure.h"
#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/state/run_time.h"
#include "services/scheduler/core/task/epoch.h"
#include "services/scheduler/core/task/loop.h"

#include <string.h>

static void error_out(
    const struct mr_sched *s, uint32_t base, const struct failure *st, struct mr_sched_error *out)
{
    (void)s;
    *out = (struct mr_sched_error){.index = st->task == NONE ? MR_NODE_NONE : st->task - base,
        .code = st->code,
        .attempts = st->attempts,
        .op = st->op,
        .message = mr_str(st->message),
        .arguments = mr_str(st->arguments),
        .worker = mr_str(st->worker),
        .log = mr_str(st->log)};
}

bool mr_sched_job(const struct mr_sched *s, mr_job_id id, struct mr_sched_job_info *out)
{
    uint32_t job = mr_sched__job_find(s, id.v);
    if (job == NONE) return false;
    const struct job *j = &s->jobs[job];
    *out = (struct mr_sched_job_info){.id = id,
        .parent = {j->parent},
        .state = j->announced ? (enum mr_job_state)j->announced : MR_JOB_PENDING,
        .accepted = (j->flags & J_ACCEPTED) != 0,
        .graph = j->graph,
        .joined = j->joined,
        .skipped = j->skipped,
        .abandoned = j->abandoned,
        .retried = j->retried,
        .recomputed = j->recomputed,
        .created_wall_ns = j->created_wall,
        .started_wall_ns = j->started_wall,
        .finished_wall_ns = j->finished_wall,
        .event_sequence = j->event_sequence};
    memcpy(out->counts, j->counts, sizeof out->counts);
    out->given = job == s->job_list.unplanned ? 0 : j->graph->nodes_count;
    for (uint32_t i = MR_TASK_WAITING; out->given && i < MR_TASK_STATES; i++)
        out->given -= j->counts[i];
    bool is_told = j->announced == j->state;
    if (!is_told) {
        out->event_sequence = 0; /* the change to this state is not announced yet */
        if (j->state >= MR_JOB_DONE) out->finished_wall_ns = 0;
    }
    if (j->has_failure && is_told) {
        out->has_error = true;
        error_out(s, j->base, &j->failure, &out->error);
        out->error.fallen = j->fallen;
    }
    return true;
}

bool mr_sched_loop(
    const struct mr_sched *s, mr_job_id id, uint32_t loop, uint32_t *rounds, bool *by_max)
{
    uint32_t job = mr_sched__job_find(s, id.v);
    const struct job *j = job == NONE ? NULL : &s->jobs[job];
    if (!j || !j->loops || loop >= j->graph->loops_count) return false;
    /* The record of the last round comes before the record of the job's end, which Redis has
     * acknowledged. So the last round is durable, too. */
    if (j->announced != j->state || j->state < MR_JOB_DONE || j->loops[loop].stop == NONE)
        return false;
    *rounds = j->loops[loop].stop + 1;
    *by_max = *rounds == j->graph->loops[loop].rounds;
    return true;
}

uint64_t mr_sched_forgotten(const struct mr_sched *s, mr_job_id job)
{
    return mr_sched__job_forgotten(s, job);
}

bool mr_sched_is_lost_journal(const struct mr_sched *s, uint32_t tag)
{
    return mr_sched__is_lost_journal(s, tag);
}

uint32_t mr_sched_epoch(const struct mr_sched *s)
{
    return s->config.epoch;
}

mr_job_id mr_sched_job_newest(const struct mr_sched *s)
{
    return (mr_job_id){s->job_list.newest == NONE ? 0 : s->jobs[s->job_list.newest].id};
}

mr_job_id mr_sched_job_older(const struct mr_sched *s, mr_job_id id)
{
    uint32_t job = mr_sched__job_find(s, id.v);
    if (job == NONE || s->jobs[job].older == NONE) return (mr_job_id){0};
    return (mr_job_id){s->jobs[s->jobs[job].older].id};
}

/* Returns the number of a node, which need not be a task; NONE: there is no such node. */
static uint32_t node_find(const struct mr_sched *s, uint64_t id, uint32_t index)
{
    uint32_t job = mr_sched__job_find(s, id);
    return job == NONE || index >= s->jobs[job].graph->nodes_count ? NONE
                                                                   : s->jobs[job].base + index;
}

/* Returns the task whose failure is the reason that `task` has no value; NONE: the reason is not a
 * failure. */
static uint32_t cause_of(const struct mr_sched *s, uint32_t task)
{
    const struct task *t = &s->tasks[task];
    const struct job *j = job_at(s, t);
    if (t->state == MR_TASK_ERRED) return t->cause;
    if (t->state != MR_TASK_CANCELLED || j->state != MR_JOB_FAILED || !j->has_failure) return NONE;
    return j->failure.task;
}

bool mr_sched_task(
    const struct mr_sched *s, mr_job_id id, uint32_t index, struct mr_sched_task_info *out)
{
    uint32_t task = node_find(s, id.v, index);
    if (task == NONE) return false;
    const struct task *t = &s->tasks[task];
    const struct job *j = job_at(s, t);
    *out = (struct mr_sched_task_info){.state = (enum mr_task_state)t->state,
        .is_skipped = t->state == MR_TASK_RELEASED && mr_sched__loop_is_skipped(s, task),
        .is_abandoned = t->is_abandoned,
        .attempt = t->attempt,
        .op = t->flags & T_FIXED ? 0 : s->classes[t->class].op,
        .worker = UINT32_MAX,
        .cause = MR_NODE_NONE,
        .is_sent = (t->flags & T_SENT) != 0,
        .waiting_inputs = t->state == MR_TASK_WAITING ? t->waiting : 0,
        .retries_left = t->retries_left,
        .ready = t->state >= MR_TASK_READY && t->state <= MR_TASK_DONE ? ready_at(s, t) : 0,
        .sent = t->flags & T_SENT ? sent_at(s, t, 0) : 0};
    if (t->flags & T_SENT)
        out->worker = t->worker;
    else if (t->value < LITERAL)
        out->worker = s->values[t->value].worker;
    const struct failure *st = mr_sched__failure(s, task);
    if (st) {
        out->has_error = true;
        error_out(s, j->base, st, &out->error);
    }
    uint32_t cause = cause_of(s, task);
    if (cause == NONE || cause == task) return true;
    out->cause = cause - j->base;
    const struct failure *why = mr_sched__failure(s, cause);
    if (why) error_out(s, j->base, why, &out->cause_error);
    return true;
}

bool mr_sched_value(const struct mr_sched *s, mr_job_id id, uint32_t index, struct mr_buf *bytes,
    struct mr_sched_value *out)
{
    uint32_t task = node_find(s, id.v, index);
    *out = (struct mr_sched_value){.kind = MR_SCHED_VALUE_NONE, .worker = UINT32_MAX};
    if (task == NONE) return false;
    const struct task *t = &s->tasks[task];
    if (!is_done(t) || t->value == NONE) return true;
    if (t->value == LITERAL) {
        struct mr_str pack = mr_graph_args(job_of(s, task)->graph, index);
        if (bytes) mr_buf_add_str(bytes, pack);
        out->kind = MR_SCHED_VALUE_INLINE;
        out->bytes = pack.n;
        return true;
    }
    const struct value *v = &s->values[t->value];
    out->bytes = v->bytes;
    out->worker = v->worker;
    if (t->flags & T_UNACKED) {
        out->kind = MR_SCHED_VALUE_UNACKED;
    } else if (v->kind == V_OBJECT) {
        out->kind = MR_SCHED_VALUE_OBJECT;
        out->object = v->object;
        out->store = v->store;
    } else if (v->kind == V_AWAY) {
        out->kind = MR_SCHED_VALUE_AWAY;
    } else {
        if (bytes) mr_sched__value_append(&s->blocks, v, bytes);
        out->kind = MR_SCHED_VALUE_INLINE;
    }
    return true;
}

bool mr_sched_worker(const struct mr_sched *s, uint32_t slot, struct mr_sched_worker_info *out)
{
    if (slot >= s->worker_list.top || s->workers[slot].state == W_FREE ||
        s->workers[slot].is_unrecovered)
        return false;
    const struct worker *w = &s->workers[slot];
    *out = (struct mr_sched_worker_info){.incarnation = w->incarnation,
        .name = mr_str(w->facts->name),
        .node = mr_str(w->facts->node),
        .is_connected = w->state == W_CONNECTED,
        .is_retiring = w->is_retiring,
        .slots = w->slots,
        .sent = w->sent,
        .running = w->running,
        .memory_bytes = w->memory_bytes,
        .memory_used_bytes = w->memory_used_bytes,
        .held_bytes = w->held_bytes,
        .tasks_started = w->tasks_started,
        .tasks_done = w->tasks_done,
        .queue_ns = w->queue_ns,
        .last_heard = w->last_heard,
        .store = w->store ? s->stores[w->store].incarnation : 0};
    return true;
}

int64_t mr_sched_clock_offset(const struct mr_sched *s, uint32_t slot)
{
    return mr_sched__clock_offset(s, slot);
}

uint32_t mr_sched_worker_slots(const struct mr_sched *s)
{
    return s->worker_list.top;
}

bool mr_sched_has_idle_slots(const struct mr_sched *s)
{
    uint64_t slots = 0, sent = 0;
    if (s->worker_list.top > 64) return false;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        if (s->workers[i].state != W_CONNECTED) continue;
        slots += s->workers[i].slots;
        sent += s->workers[i].sent;
    }
    return sent < slots;
}

uint32_t mr_sched_ops_count(const struct mr_sched *s)
{
    return s->op_list.count;
}

struct mr_str mr_sched_op_name(const struct mr_sched *s, uint32_t op)
{
    return op >= 1 && op <= s->op_list.count ? s->ops[op].name : MR_STR("");
}

bool mr_sched_op(const struct mr_sched *s, uint32_t op, struct mr_sched_op_info *out)
{
    if (op < 1 || op > s->op_list.count) return false;
    const struct op *o = &s->ops[op];
    *out = (struct mr_sched_op_info){.name = o->name,
        .deterministic = o->deterministic,
        .by_reference = o->by_reference,
        .long_running = o->long_running,
        .workers = o->workers,
        .tasks = o->tasks,
        .wall_ns = o->wall_ns,
        .cpu_ns = o->cpu_ns,
        .queue_ns = o->queue_ns,
        .bytes = o->bytes,
        .estimate_ns = o->estimate_ns};
    return true;
}

struct mr_str mr_sched_resource_name(const struct mr_sched *s, uint32_t kind)
{
    return kind < s->class_list.resources_count ? mr_str(s->class_list.resource_names[kind])
                                                : MR_STR("");
}

uint32_t mr_sched_stores_count(const struct mr_sched *s)
{
    return s->store_list.count;
}

uint32_t mr_sched_stores_changes(const struct mr_sched *s)
{
    return s->store_list.changes;
}

bool mr_sched_store(const struct mr_sched *s, uint32_t number, uint64_t *incarnation,
    struct mr_str *node, struct mr_str *address, bool *is_alive)
{
    if (number < 1 || number > s->store_list.count) return false;
    const struct store *st = &s->stores[number];
    *incarnation = st->incarnation;
    *node = mr_str(st->node);
    *address = mr_str(st->address);
    *is_alive = st->is_alive && st->is_connected;
    return true;
}

void mr_sched_totals(const struct mr_sched *s, struct mr_sched_totals *out)
{
    *out = (struct mr_sched_totals){.epoch = s->config.epoch,
        .jobs_running = s->job_list.running,
        .tasks_done = s->totals.tasks_done,
        .tasks_sent = s->totals.tasks_sent,
        .steals = s->totals.steals,
        .placed_cached = s->totals.placed_cached,
        .placed_repaired = s->totals.placed_repaired,
        .placed_scored = s->totals.placed_scored,
        .roots_held = s->totals.roots_held,
        .recomputed = s->totals.recomputed,
        .journal_sequence = s->journal.sequence,
        .journal_acked = s->journal.acked,
        .journal_is_away = s->journal.is_away,
        .is_recovering = s->is_recovering,
        .is_paused =
            s->journal.written_bytes - s->journal.acked_bytes > s->config.unacked_bytes_max};
    out->tasks_ready = s->queue.count;
    for (uint32_t i = 0; i < s->class_list.active_count; i++)
        out->tasks_ready += s->classes[s->class_list.active[i]].parked;
    for (uint32_t i = 0; i < s->worker_list.top; i++) {
        if (s->workers[i].state != W_CONNECTED) continue;
        out->workers++;
        out->slots += s->workers[i].slots;
    }
    for (uint32_t i = 1; i <= s->store_list.count; i++)
        out->stores += s->stores[i].is_alive && s->stores[i].is_connected;
}

uint64_t mr_sched_unread(const struct mr_sched *s, mr_job_id *job, struct mr_error *why)
{
    job->v = s->replay.unread_job;
    *why = s->replay.unread_why;
    return s->replay.unread_count;
}
