/* Reports of executors. A strand is a list of tasks, its items, that one executor runs back to
 * back. Results of items become values and completions, and items that did not run return to the
 * queue. Also the two deadlines of a running task: its timeout, and the grace period after its
 * cancellation. */
#include "services/worker/core/internal.h"

static void op_measure(struct op *o, mr_duration took)
{
    if (o->measured) {
        o->cost_ns = o->cost_ns - o->cost_ns / 8 + took / 8;
    } else {
        o->cost_ns = took;
        o->measured = true;
    }
    if (!o->cost_ns) o->cost_ns = 1;
}

static void item_measure(struct mr_worker *w, const struct mr_strand_item *item)
{
    const struct mr_strand_result *r = &item->result;
    if (!r->started_ns) return;
    w->tasks_started++;
    if (r->end == MR_STRAND_DONE) op_measure(&w->ops[item->op], r->duration_ns);
}

/* Sets the parts of the item's time in the row that was added last. */
static void row_parts(
    struct mr_worker *w, const struct mr_strand *s, const struct mr_strand_item *item)
{
    const struct mr_strand_result *r = &item->result;
    const struct task *t = &w->tasks[item->task];
    if (!r->has_parts && !t->inputs_at) return;
    struct mr_strand_parts p = {0};
    if (r->has_parts) p = s->parts[item - s->items];
    const mr_duration waited =
        t->inputs_at ? r->started_ns - MR_MIN(t->inputs_at, r->started_ns) : 0;
    const struct outparts parts = {{[PART_INPUT] = p.input_ns,
        [PART_OUTPUT] = p.output_ns,
        [PART_LATE] = p.late_ns,
        [PART_WAITED] = waited,
        [PART_DELAYED] = p.delayed_ns,
        [PART_ROOM] = p.room_ns,
        [PART_RESTORE] = p.restore_ns,
        [PART_TRAINING] = p.training}};
    mr_worker__out_parts(w, &parts);
}

/* Sets the item's slot and all its times in the row that was added last. Returns this row. */
static struct outrow *row_times(
    struct mr_worker *w, const struct mr_strand *s, const struct mr_strand_item *item)
{
    const struct mr_strand_result *r = &item->result;
    struct outrow *row = mr_worker__out_last(w);
    row->slot = s->slot;
    row->started_ns = r->started_ns;
    row->duration_ns = r->duration_ns;
    row->cpu_ns = r->cpu_ns;
    row_parts(w, s, item);
    return row;
}

/* Drops the object that a task made and that is no longer needed. */
static void result_discard(struct mr_worker *w, const struct mr_strand_item *item)
{
    if (item->result.pack.n || !item->result.object_bytes) return;
    struct mr_worker_effect *e = mr_worker__fx_add(w, MR_WORKER_DROP);
    e->object.object = item->result.object;
    e->object.job = item->job;
}

/* True: all tasks that use the item's value have run in this strand, and the report that is being
 * taken includes these tasks. Then no other process needs the value. */
static bool item_is_used_up(
    struct mr_worker *w, const struct mr_strand *s, const struct mr_strand_item *item)
{
    const struct task *t = &w->tasks[item->task];
    struct value *v = &w->values[t->value];
    uint32_t users = 0;
    if (!item->uses || t->again) return false;
    MR_LIST_EACH(node, &v->users)
    {
        const struct task *u = &w->tasks[MR_LIST_ITEM(node, struct edge, users)->task];
        if (u->state != TASK_GIVEN || u->strand != s->id || u->item >= s->done) return false;
        if (s->items[u->item].result.end != MR_STRAND_DONE) return false;
        users++;
    }
    return users == item->uses;
}

/* True: all users of the value are on this worker, so the scheduler has nothing to do when it
 * learns of the value, and the report may wait. False also for the value `true`, because it may end
 * a loop. */
static bool item_is_wanted_here(
    struct mr_worker *w, const struct task *t, const struct mr_strand_result *r)
{
    if (r->pack.n == 1 && (unsigned char)r->pack.p[0] == 0xc3) return false;
    const struct value *v = &w->values[t->value];
    uint32_t users = 0;
    MR_LIST_EACH(node, &v->users)
    users++;
    return t->uses && users == t->uses;
}

static void item_used_up(
    struct mr_worker *w, const struct mr_strand *s, const struct mr_strand_item *item)
{
    bool was_urgent = w->out_urgent;
    mr_worker__task_report(w, item->task, MR_OUTCOME_USED_UP);
    w->out_urgent = was_urgent;
    (void)row_times(w, s, item);
    result_discard(w, item);
    w->tasks_done++;
    mr_worker__task_end(w, item->task, true);
}

static void item_done(
    struct mr_worker *w, const struct mr_strand *s, const struct mr_strand_item *item)
{
    uint32_t task = item->task;
    struct task *t = &w->tasks[task];
    const struct mr_strand_result *r = &item->result;
    bool refers = w->ops[t->op].flags & MR_WORKER_OP_BY_REFERENCE;
    /* If a later attempt of the task has come, a result by reference may name objects that are gone
     * (invariant I2 of docs/invariants.md). */
    if (t->mute || (t->again && refers)) {
        result_discard(w, item);
        mr_worker__task_end(w, task, false);
        return;
    }
    if (item_is_used_up(w, s, item)) {
        item_used_up(w, s, item);
        return;
    }
    /* the executor dropped the value, but a new user came meanwhile: the task runs again */
    if (r->used) {
        if (!t->again) mr_worker__task_report(w, task, MR_OUTCOME_RETURNED);
        mr_worker__task_end(w, task, false);
        return;
    }
    struct mr_blob *blob = r->pack.n ? mr_worker__blob_copy(&w->pool, r->pack) : NULL;
    if (r->pack.n && !blob) {
        mr_worker__task_fail(w, task, MR_OUTCOME_ERROR, MR_ELIMIT,
            MR_STR("this worker's memory for small values is full"));
        return;
    }
    /* If a later attempt of the task has come, it need not run. The value counts as that of the
     * later attempt, because the scheduler does not accept an object of an earlier one (I2). */
    mr_worker__task_take_again(t);
    uint32_t value = t->value;
    struct value *v = &w->values[value];
    mr_worker__value_clear(w, v);
    v->made = true;
    v->attempt = t->attempt;
    v->blob = blob;
    v->object = r->object;
    v->object_bytes = r->object_bytes;
    v->started_ns = r->started_ns;
    v->duration_ns = r->duration_ns;
    v->cpu_ns = r->cpu_ns;
    v->slot = s->slot;
    v->state = VALUE_HERE;
    w->held_bytes += blob ? blob->bytes : r->object_bytes;
    bool was_urgent = w->out_urgent;
    mr_worker__out_held(w, v);
    row_parts(w, s, item);
    /* a long-running task is reported at once: the scheduler does not expect its end */
    bool is_long = s->slot >= w->config.slots;
    if (item_is_wanted_here(w, t, r) && !is_long) w->out_urgent = was_urgent;
    w->tasks_done++;
    mr_worker__value_came(w, value);
    mr_worker__task_end(w, task, true);
}

static void item_failed(
    struct mr_worker *w, const struct mr_strand *s, const struct mr_strand_item *item)
{
    struct task *t = &w->tasks[item->task];
    const struct mr_strand_result *r = &item->result;
    if (!t->mute) {
        enum mr_outcome outcome = MR_OUTCOME_ERROR;
        if (r->end == MR_STRAND_STOPPED)
            outcome = t->timed_out ? MR_OUTCOME_TIMEOUT : MR_OUTCOME_CANCELLED;
        if (r->end == MR_STRAND_FAILED && (r->code == MR_EINVAL || r->code == MR_EFORMAT))
            outcome = MR_OUTCOME_BAD_ARGUMENT;
        mr_worker__task_report(w, item->task, outcome);
        struct outrow *row = row_times(w, s, item);
        if (outcome == MR_OUTCOME_TIMEOUT) {
            mr_worker__out_failure(
                w, row, MR_ETIMEOUT, MR_STR("the task ran into its timeout"), r->arguments, r->log);
        } else if (outcome != MR_OUTCOME_CANCELLED) {
            mr_worker__out_failure(w, row, r->code, r->message, r->arguments, r->log);
        }
    }
    w->tasks_done += r->end == MR_STRAND_FAILED;
    mr_worker__task_end(w, item->task, false);
}

/* Takes back a task whose attempt gave neither a value nor a failure of the task; often the task
 * did not run. If `cancel`, `mute`, `steal` or `draining` is set, the task ends here. Otherwise the
 * task is parked (mr_worker__task_park). */
static void item_back(struct mr_worker *w, const struct mr_strand_item *item, struct mr_str why)
{
    uint32_t task = item->task;
    struct task *t = &w->tasks[task];
    if (t->cancel) {
        mr_worker__task_report(w, task, MR_OUTCOME_CANCELLED);
        mr_worker__task_end(w, task, false);
    } else if (t->mute) {
        mr_worker__task_end(w, task, false);
    } else if (t->steal) {
        mr_worker__answer_add(w, &w->given, item->job, item->index, item->attempt);
        mr_worker__task_end(w, task, false);
    } else if (w->draining) {
        mr_worker__task_report(w, task, MR_OUTCOME_RETURNED);
        mr_worker__task_end(w, task, false);
    } else {
        mr_worker__task_park(w, task, why);
    }
}

static void item_input_gone(struct mr_worker *w, const struct mr_strand_item *item)
{
    uint32_t gone = item->result.gone;
    mr_assert(gone < item->inputs_count);
    struct task *t = &w->tasks[item->task];
    uint32_t value = task_edges(t)[gone].value;
    const struct value *v = &w->values[value];
    struct mr_str why = item->result.message;
    if (v->state == VALUE_NONE || v->blob ||
        !mr_object_id_eq(v->object, item->inputs[gone].object)) {
        /* the loss is known already, or the value is now a small value or another object: the task
         * may start again */
        item_back(w, item, why);
        return;
    }
    /* The scheduler must learn of the lost value, even if this task was cancelled. */
    struct missing_row row = {.job = item->job,
        .index = item->index,
        .attempt = item->attempt,
        .input = v->index,
        .why = mr_worker__blob_copy(&w->pool, why)};
    mr_worker__missing_add(w, &row);
    mr_worker__value_lost(w, value, why);
    if (t->cancel || t->mute || w->draining) {
        item_back(w, item, why);
        return;
    }
    mr_worker__task_report(w, item->task, MR_OUTCOME_LOST_INPUT);
    mr_worker__task_end(w, item->task, false);
}

/* Reports an attempt that failed through no fault of its task. NO_ROOM: the task should run when
 * less memory is in use. LOST_INPUT: an object store failed. The store may return, or its objects
 * may be made again. */
static void item_again(struct mr_worker *w, const struct mr_strand *s,
    const struct mr_strand_item *item, enum mr_outcome outcome, int code)
{
    const struct task *t = &w->tasks[item->task];
    const struct mr_strand_result *r = &item->result;
    if (t->cancel || t->mute || w->draining) {
        item_back(w, item, r->message);
        return;
    }
    mr_worker__task_report(w, item->task, outcome);
    struct outrow *row = row_times(w, s, item);
    mr_worker__out_failure(w, row, code, r->message, r->arguments, r->log);
    mr_worker__task_end(w, item->task, false);
}

static void inputs_put(struct mr_worker *w, const struct mr_strand_item *item)
{
    for (uint32_t i = 0; i < item->inputs_count; i++) {
        struct mr_blob *held = item->inputs[i].held;
        mr_worker__blob_put(&w->pool, &held);
    }
}

static void item_take(struct mr_worker *w, struct mr_strand *s, struct mr_strand_item *item)
{
    inputs_put(w, item);
    if (s->stop_at == s->reported) s->kill_ns = MR_NEVER;
    item_measure(w, item);
    struct task *t = &w->tasks[item->task];
    if (t->steal && item->result.end != MR_STRAND_SKIPPED) {
        mr_worker__answer_add(w, &w->started, item->job, item->index, item->attempt);
        t->steal = false;
    }
    switch (item->result.end) {
    case MR_STRAND_DONE: item_done(w, s, item); break;
    case MR_STRAND_FAILED:
    case MR_STRAND_STOPPED: item_failed(w, s, item); break;
    case MR_STRAND_SKIPPED: item_back(w, item, MR_STR("")); break;
    case MR_STRAND_INPUT_GONE: item_input_gone(w, item); break;
    case MR_STRAND_NO_ROOM: item_again(w, s, item, MR_OUTCOME_NO_ROOM, MR_ELIMIT); break;
    case MR_STRAND_STORE_GONE:
        item_again(w, s, item, MR_OUTCOME_LOST_INPUT, item->result.code);
        break;
    }
}

/* Measures what it costs to give a task a strand of its own: the time to wake an idle slot. */
static void handoff_measure(struct mr_worker *w, const struct mr_strand *s)
{
    mr_time started = s->items[0].result.started_ns;
    if (!s->given_ns || started < s->given_ns) return;
    mr_duration took = MR_MIN(started - s->given_ns, (mr_duration)MR_MS);
    w->handoff_ns = w->handoff_ns - w->handoff_ns / 8 + took / 8;
}

/* Returns the strand; NULL: all its items were reported or cut off. */
static struct mr_strand *strand_of(struct mr_worker *w, uint32_t id)
{
    mr_assert(id < w->strands_high);
    return w->strands[id].alive ? &w->strands[id] : NULL;
}

static void items_reported(struct mr_worker *w, const struct mr_worker_event *ev)
{
    struct mr_strand *s = strand_of(w, ev->report.strand);
    if (!s || ev->report.done <= s->reported) return;
    mr_assert(ev->report.done <= s->count); /* I23 */
    s->done = ev->report.done;
    if (!s->reported) handoff_measure(w, s);
    while (s->reported < ev->report.done) {
        struct mr_strand_item *item = &s->items[s->reported];
        s->cost_ns -= MR_MIN(s->cost_ns, w->tasks[item->task].cost_ns);
        item_take(w, s, item);
        s->reported++;
    }
    s->moved_ns = w->now;
    s->look_ns = mr_time_after(w->now, LOOK_AFTER);
    s->stop_ns = MR_NEVER;
    /* The core may have asked the executor to give items back (a cut, `taking`). Until the answer
     * comes, the strand keeps its number, so the answer finds this strand and not a later one. */
    if (s->reported == s->count && !s->taking) mr_worker__strand_retire(w, s);
}

void mr_worker__strand_reported(struct mr_worker *w, const struct mr_worker_event *ev)
{
    items_reported(w, ev);
    if (!ev->report.last) return;
    struct mr_strand *s = &w->strands[ev->report.strand];
    mr_assert(s->held);
    mr_worker__strand_let_go(w, s);
}

/* Asks the executor to set the item's cancel flag. The item has MR_WORKER_GRACE to notice the flag.
 */
static void item_stop(struct mr_worker *w, struct mr_strand *s, uint32_t at)
{
    w->tasks[s->items[at].task].stopping = true;
    struct mr_worker_effect *e = mr_worker__fx_add(w, MR_WORKER_STOP);
    e->item.strand = s->id;
    e->item.at = at;
    s->stop_at = at;
    s->kill_ns = mr_time_after(w->now, MR_WORKER_GRACE);
}

/* Applies the answer to a cut: the strand ends at `count`. Tasks behind `count` are queued again,
 * dropped, or given back to the scheduler. */
void mr_worker__strand_cut(struct mr_worker *w, const struct mr_worker_event *ev)
{
    struct mr_strand *s = strand_of(w, ev->cut.strand);
    if (!s || !s->taking) return;
    s->taking = false;
    /* the cut was asked for in an earlier pass of the shell's loop (turn), so another turn is
     * due */
    w->more = true;
    uint32_t count = s->count, keep = MR_MIN(ev->cut.count, s->count);
    mr_assert(keep >= s->reported); /* I23 */
    s->count = keep;
    /* The core asked for the items from number `asked` on. The executor keeps one of these only if
     * it has begun that item. In this case all items that the executor keeps have begun. */
    s->begun = s->begun || keep > s->asked;
    /* Of the items that have begun, only the last may still run. The others have ended and need no
     * cancel flag. */
    uint32_t runs = keep > s->asked ? keep - 1 : NONE;
    for (uint32_t i = s->reported; i < keep; i++) {
        struct mr_strand_item *item = &s->items[i];
        struct task *t = &w->tasks[item->task];
        if (t->steal) {
            mr_worker__answer_add(w, &w->started, item->job, item->index, item->attempt);
            t->steal = false;
        }
        if (i == runs && t->cancel && !t->stopping) item_stop(w, s, i);
    }
    for (uint32_t i = keep; i < count; i++) {
        struct mr_strand_item *item = &s->items[i];
        s->cost_ns -= MR_MIN(s->cost_ns, w->tasks[item->task].cost_ns);
        inputs_put(w, item);
        item_back(w, item, MR_STR("lost while the task was queued"));
    }
    if (s->reported == s->count) mr_worker__strand_retire(w, s);
}

/* Called when the strand's running item has reached its timeout, or when the grace period of an
 * item that was told to stop is over. In the first case stops the item. In the second case the
 * process has to end. */
static void strand_late(struct mr_worker *w, struct mr_strand *s)
{
    if (s->kill_ns <= w->now) {
        s->kill_ns = MR_NEVER;
        w->lethal = true;
        return;
    }
    struct task *t = &w->tasks[s->items[s->reported].task];
    s->stop_ns = MR_NEVER;
    t->timed_out = !t->cancel;
    if (t->stopping) return;
    t->cancel = true;
    item_stop(w, s, s->reported);
}

/* Called when a task ignores its cancel flag, so that only the end of the process can end the task.
 * Reports the task as cancelled or timed out, and returns all other tasks to the scheduler. */
static void process_lost(struct mr_worker *w)
{
    for (uint32_t k = 0; k < w->slots_count; k++) {
        for (uint32_t i = 0; i < w->slots[k].count; i++) {
            struct mr_strand *s = w->slots[k].strands[i];
            for (uint32_t n = s->reported; n < s->count; n++) {
                struct task *t = &w->tasks[s->items[n].task];
                bool guilty = t->stopping && s->stop_at == n;
                enum mr_outcome outcome = MR_OUTCOME_RETURNED;
                if (guilty) outcome = t->timed_out ? MR_OUTCOME_TIMEOUT : MR_OUTCOME_CANCELLED;
                mr_worker__task_report(w, s->items[n].task, outcome);
                if (guilty && t->timed_out && !t->mute)
                    mr_worker__out_failure(w, mr_worker__out_last(w), MR_ETIMEOUT,
                        MR_STR("the task ran into its timeout and ignored the request to stop; "
                               "its worker was restarted"),
                        MR_STR(""), MR_STR(""));
                t->mute = true;
            }
        }
    }
    w->draining = true;
    mr_worker__tasks_return_all(w);
}

void mr_worker__strands_watch(struct mr_worker *w)
{
    bool was = w->lethal;
    for (uint32_t k = 0; k < w->slots_count; k++)
        for (uint32_t i = 0; i < w->slots[k].count; i++) {
            struct mr_strand *s = w->slots[k].strands[i];
            if (MR_MIN(s->stop_ns, s->kill_ns) <= w->now) strand_late(w, s);
        }
    if (w->lethal && !was) process_lost(w);
}

mr_time mr_worker__strands_deadline(const struct mr_worker *w)
{
    mr_time at = MR_NEVER;
    for (uint32_t k = 0; k < w->slots_count; k++)
        for (uint32_t i = 0; i < w->slots[k].count; i++)
            at = MR_MIN(
                at, MR_MIN(w->slots[k].strands[i]->stop_ns, w->slots[k].strands[i]->kill_ns));
    return at;
}
