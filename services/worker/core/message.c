/* Sends at most one message in a turn (one pass of the shell's loop): Register when a stream opens,
 * otherwise completions, answers and the heartbeat. The columns of the message are lent to the
 * shell until the next step. */
#include "services/worker/core/internal.h"

#define TEXTS_BYTES_MAX ((size_t)4 << 20)
#define RUNNING_LONG (100 * MR_MS)
#define IDLE_BEATS 3 /* heartbeats in the time of a lease while the worker has no work */

static void refs_clear(struct refs *r)
{
    r->count = r->runs_count = 0;
}

static struct mr_ws_refs refs_lend(const struct refs *r)
{
    return (struct mr_ws_refs){r->runs, r->runs_count, r->index, r->attempt, r->count};
}

static void columns_clear(struct columns *c)
{
    c->runs_count = c->count = c->objects_count = c->failures_count = 0;
    c->inlined_bytes = c->texts_bytes = 0;
    c->parts_used = 0;
    c->any_not_ok = false;
}

static void columns_failure(struct columns *c, struct mr_blob **blob)
{
    const struct failure *f = mr_worker__blob_at(*blob);
    const char *p = (const char *)(f + 1);
    c->failures[c->failures_count] = (struct mr_ws_failure){.row = c->count,
        .code = mr_err_grpc(f->code),
        .message = mr_str_of(p, f->message_bytes),
        .arguments = mr_str_of(p + f->message_bytes, f->arguments_bytes),
        .log = mr_str_of(p + f->message_bytes + f->arguments_bytes, f->log_bytes)};
    c->texts[c->failures_count++] = MR_STEAL(*blob);
}

/* Adds the parts of a row to the columns. A column is in use from the first part that is not 0.
 * `parts`: NULL: all parts are 0. */
static void columns_parts(struct columns *c, const struct outparts *parts)
{
    for (unsigned p = 0; p < PARTS; p++) {
        uint64_t ns = parts ? parts->at[p] : 0;
        if (ns && !(c->parts_used & 1u << p)) {
            memset(c->parts[p], 0, c->count * sizeof *c->parts[p]);
            c->parts_used |= 1u << p;
        }
        if (c->parts_used & 1u << p) c->parts[p][c->count] = ns;
    }
}

/* NULL: the part is 0 in all rows. */
static const uint64_t *column_of(const struct columns *c, enum part p)
{
    return c->parts_used & 1u << p ? c->parts[p] : NULL;
}

/* Adds a row to the message and takes over the row's blobs. False: the message is full, and the row
 * keeps them. `parts`: only read if the row has parts. */
static bool columns_add(struct mr_worker *w, struct outrow *r, const struct outparts *parts)
{
    struct columns *c = &w->columns;
    size_t bytes = r->blob ? r->blob->bytes : 0;
    size_t texts = r->failure ? r->failure->bytes : 0;
    if (c->count == SEND_ROWS_MAX || c->inlined_bytes + bytes > c->inlined_max) return false;
    if (texts && (c->failures_count == SEND_TEXTS_MAX || c->texts_bytes + texts > TEXTS_BYTES_MAX))
        return false;
    if (!c->runs_count || c->runs[c->runs_count - 1].job.v != r->job.v)
        c->runs[c->runs_count++] = (struct mr_ws_run){.job = r->job};
    c->runs[c->runs_count - 1].count++;
    uint32_t i = c->count;
    c->index[i] = r->index;
    c->attempt[i] = r->attempt;
    c->outcome[i] = r->outcome;
    c->inline_bytes[i] = (uint32_t)bytes;
    c->started[i] = r->started_ns;
    c->duration[i] = r->duration_ns;
    c->cpu[i] = r->cpu_ns;
    c->slot[i] = r->slot;
    if (r->has_parts || c->parts_used) columns_parts(c, r->has_parts ? parts : NULL);
    c->any_not_ok = c->any_not_ok || r->outcome != MR_OUTCOME_OK;
    if (bytes) memcpy(c->inlined + c->inlined_bytes, mr_worker__blob_at(r->blob), bytes);
    c->inlined_bytes += bytes;
    if (r->outcome == MR_OUTCOME_OK && !bytes) {
        c->maker[c->objects_count] = r->object.maker;
        c->number[c->objects_count] = r->object.number;
        c->object_bytes[c->objects_count++] = r->object_bytes;
    }
    mr_worker__blob_put(&w->pool, &r->blob);
    if (texts) columns_failure(c, &r->failure);
    c->texts_bytes += texts;
    c->count++;
    return true;
}

static struct mr_ws_completed columns_lend(struct columns *c)
{
    mr_time base = MR_NEVER;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->started[i]) base = MR_MIN(base, c->started[i]);
    if (base == MR_NEVER) base = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->started[i]) c->started[i] -= base;
    return (struct mr_ws_completed){
        .tasks = {c->runs, c->runs_count, c->index, c->attempt, c->count},
        .outcome = c->any_not_ok ? c->outcome : NULL,
        .inline_bytes = c->inline_bytes,
        .inlined = mr_str_of(c->inlined, c->inlined_bytes),
        .object_maker = c->maker,
        .object_number = c->number,
        .object_bytes = c->object_bytes,
        .base_ns = base,
        .started_ns = c->started,
        .duration_ns = c->duration,
        .cpu_ns = c->cpu,
        .input_ns = column_of(c, PART_INPUT),
        .output_ns = column_of(c, PART_OUTPUT),
        .late_ns = column_of(c, PART_LATE),
        .waited_ns = column_of(c, PART_WAITED),
        .delayed_ns = column_of(c, PART_DELAYED),
        .room_ns = column_of(c, PART_ROOM),
        .restore_ns = column_of(c, PART_RESTORE),
        .training = column_of(c, PART_TRAINING),
        .slot = c->slot,
        .failures = c->failures,
        .objects_count = c->objects_count,
        .failures_count = c->failures_count};
}

static void missing_drop(struct mr_worker *w, uint32_t count)
{
    if (!count) return;
    for (uint32_t i = 0; i < count; i++)
        mr_worker__blob_put(&w->pool, &w->missing[i].why);
    w->missing_count -= count;
    memmove(w->missing, w->missing + count, w->missing_count * sizeof *w->missing);
}

void mr_worker__send_free(struct mr_worker *w)
{
    for (uint32_t i = 0; i < w->columns.failures_count; i++)
        mr_worker__blob_put(&w->pool, &w->columns.texts[i]);
    w->columns.failures_count = 0;
    missing_drop(w, w->missing_sent);
    w->missing_sent = 0;
}

/* Sends Register: the values that the worker made and has, and the tasks that it has not finished.
 * The scheduler may be a new one that knows neither. Values that do not fit into the message follow
 * as completions. */
static void send_register(struct mr_worker *w)
{
    columns_clear(&w->columns);
    w->columns.inlined_max = SEND_INLINE_MAX;
    bool full = false;
    for (uint32_t i = 0; i < w->values_high; i++) {
        struct value *v = &w->values[i];
        if (v->job == NONE || !v->made) continue;
        struct outrow r = mr_worker__out_row(w, v);
        full = full || !columns_add(w, &r, NULL);
        mr_worker__blob_put(&w->pool, &r.blob);
        v->offered = v->reported = !full;
        v->adopted = false;
    }
    mr_worker__out_drop_reported(w);
    w->missing_old = w->missing_count;
    refs_clear(&w->queued);
    MR_LIST_EACH(node, &w->tasks_all)
    {
        struct task *t = MR_LIST_ITEM(node, struct task, all);
        t->offered = !t->mute;
        if (t->mute) continue;
        const struct value *v = &w->values[t->value];
        mr_worker__answer_add(
            w, &w->queued, value_job(w, v), v->index, MR_MAX(t->attempt, t->again));
    }
    w->reg = (struct mr_ws_register){.incarnation = w->incarnation,
        .epoch = w->epoch,
        .scheduler = w->scheduler,
        .time_ns = w->now,
        .holding = columns_lend(&w->columns),
        .queued = refs_lend(&w->queued)};
    w->up = (struct mr_ws_up){.reg = &w->reg};
    w->link = LINK_ASKED;
    mr_worker__fx_add(w, MR_WORKER_SEND)->send = &w->up;
}

/* Applies the scheduler's answer to the values that Register offered: adopted ones stay, others are
 * released. */
static void adopt(struct mr_worker *w, const struct mr_ws_registered *m, bool is_same)
{
    struct mr_ws_walk walk = {.runs = m->adopt.runs};
    for (uint32_t i = 0; i < m->adopt.count; i++) {
        uint32_t value = mr_worker__value_find(w, mr_ws_walk_next(&walk), m->adopt.index[i]);
        if (value != NONE && w->values[value].attempt == mr_ws_attempt_of(&m->adopt, i))
            w->values[value].adopted = true;
    }
    for (uint32_t i = 0; i < w->values_high; i++) {
        struct value *v = &w->values[i];
        if (v->job == NONE || !v->made) continue;
        bool release = (v->offered && !v->adopted) || (v->used && is_same);
        /* an earlier scheduler released the value, and this one needs it */
        if (v->adopted && !is_same) v->released = false;
        v->offered = v->used = false;
        if (!release && !v->reported) mr_worker__out_held(w, v);
        if (!release) continue;
        v->released = true;
        mr_worker__value_settle(w, i);
    }
}

/* Removes the marks of last uses that an earlier scheduler has set. This scheduler may have more
 * uses for the same inputs, and releases the inputs itself. */
static void forget_last_uses(struct task *t)
{
    struct edge *edges = task_edges(t);
    for (uint32_t i = 0; i < t->inputs_count; i++)
        edges[i].last_use = edges[i].last_again = false;
}

static void keep(struct mr_worker *w, const struct mr_ws_registered *m, bool is_same)
{
    struct mr_ws_walk walk = {.runs = m->keep.runs};
    for (uint32_t i = 0; i < m->keep.count; i++) {
        uint32_t value = mr_worker__value_find(w, mr_ws_walk_next(&walk), m->keep.index[i]);
        if (value == NONE || w->values[value].task == NONE) continue;
        struct task *t = &w->tasks[w->values[value].task];
        t->kept = MR_MAX(t->attempt, t->again) == mr_ws_attempt_of(&m->keep, i);
    }
    MR_LIST_EACH(node, &w->tasks_all)
    {
        struct task *t = MR_LIST_ITEM(node, struct task, all);
        bool stop = t->offered && !t->kept;
        if (!is_same) forget_last_uses(t);
        t->offered = t->kept = false;
        if (stop) mr_worker__task_stop(w, (uint32_t)(t - w->tasks), true);
    }
}

void mr_worker__registered_apply(struct mr_worker *w, const struct mr_ws_registered *m)
{
    if (w->link != LINK_ASKED) return;
    w->link = LINK_REGISTERED;
    bool is_same = w->scheduler == m->scheduler;
    /* If the scheduler has restarted, reports of missing inputs from before this stream are
     * dropped. The new scheduler may reuse the attempt number of a report for an attempt whose
     * inputs are not missing. */
    if (!is_same) missing_drop(w, w->missing_old);
    w->incarnation = m->incarnation;
    w->scheduler = m->scheduler;
    w->epoch = m->epoch;
    w->attempts = 0;
    w->leaving_sent = false;
    w->heartbeat_ns = MR_MIN(MR_MAX(m->heartbeat_ns, 10 * MR_MS), MR_SECOND * 10);
    w->idle_beat_ns = m->lease_ns / IDLE_BEATS;
    w->idle_beat_ns -= MR_MIN(w->idle_beat_ns, w->heartbeat_ns);
    w->heartbeat_at = w->now;
    /* a number that tasks_done never reaches, so that the first heartbeat is due now */
    w->heartbeat.tasks_done = UINT64_MAX;
    adopt(w, m, is_same);
    keep(w, m, is_same);
    mr_worker__strands_report_left(w);
}

/* Returns when the next heartbeat is due. A heartbeat wakes two processes, so it is due later while
 * it would say only that the worker is alive. */
mr_time mr_worker__heartbeat_due(const struct mr_worker *w)
{
    bool is_quiet = !w->tasks_count && w->heartbeat.tasks_done == w->tasks_done &&
                    w->heartbeat.held_bytes == w->held_bytes;
    return is_quiet ? mr_time_after(w->heartbeat_at, w->idle_beat_ns) : w->heartbeat_at;
}

static void heartbeat_fill(struct mr_worker *w)
{
    refs_clear(&w->running);
    uint32_t running = 0;
    for (uint32_t k = 0; k < w->slots_count; k++) {
        if (!w->slots[k].count) continue;
        const struct mr_strand *s = w->slots[k].strands[0];
        running++;
        if (s->reported >= s->count || w->now - s->moved_ns < RUNNING_LONG) continue;
        const struct mr_strand_item *item = &s->items[s->reported];
        if (w->tasks[item->task].mute) continue;
        w->running_ns[w->running.count] = w->now - s->moved_ns;
        mr_worker__answer_add(w, &w->running, item->job, item->index, item->attempt);
    }
    w->heartbeat = (struct mr_ws_heartbeat){.sequence = ++w->sequence,
        .time_ns = w->now,
        .memory_used_bytes = w->memory_used,
        .held_bytes = w->held_bytes,
        .queued = w->tasks_count - MR_MIN(running, w->tasks_count),
        .running = running,
        .tasks_started = w->tasks_started,
        .tasks_done = w->tasks_done,
        .running_tasks = refs_lend(&w->running),
        .running_ns = w->running_ns,
        .queue_ns = w->queue_cost_ns / w->config.slots,
        .cpu_ns = w->cpu_ns,
        .received_bytes = w->received_bytes,
        .sent_bytes = w->sent_bytes};
    w->heartbeat_at = mr_time_after(w->now, w->heartbeat_ns);
}

static void send_missing(struct mr_worker *w)
{
    uint32_t n = MR_MIN(w->missing_count, SEND_ROWS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct missing_row *r = &w->missing[i];
        w->missing_out[i] = (struct mr_ws_missing){
            r->job, r->index, r->attempt, r->input, mr_worker__blob_str(r->why)};
    }
    w->missing_sent = n;
    w->up.missing = w->missing_out;
    w->up.missing_count = n;
}

static void send_received(struct mr_worker *w)
{
    memcpy(w->received_out, w->received, w->received_count * sizeof *w->received);
    w->up.received_ns = w->received_out;
    w->up.received_count = w->received_count;
    w->up.received_first = w->received_first;
    w->received_first += w->received_count;
    w->received_count = 0;
}

static void send_news(struct mr_worker *w)
{
    columns_clear(&w->columns);
    w->columns.inlined_max = MR_INLINE_MESSAGE_BYTES_MAX;
    uint32_t room = w->config.outbox_max + w->config.tasks_max;
    while (w->out_count && columns_add(w, &w->outbox[w->out_head], &w->out_parts[w->out_head])) {
        w->out_head = (w->out_head + 1) % room;
        w->out_count--;
    }
    w->out_urgent = w->out_count > 0;
    w->up = (struct mr_ws_up){.completed = columns_lend(&w->columns),
        .given = refs_lend(&w->given),
        .started = refs_lend(&w->started),
        .unknown = refs_lend(&w->unknown),
        .left_slot = refs_lend(&w->left),
        .leaving = w->draining && !w->leaving_sent};
    send_missing(w);
    send_received(w);
    if (mr_worker__heartbeat_due(w) <= w->now) {
        heartbeat_fill(w);
        w->up.heartbeat = &w->heartbeat;
    }
    refs_clear(&w->given); /* clears only the counts, because the message uses the columns */
    refs_clear(&w->started);
    refs_clear(&w->unknown);
    refs_clear(&w->left);
    w->leaving_sent = w->leaving_sent || w->draining;
    mr_worker__fx_add(w, MR_WORKER_SEND)->send = &w->up;
}

void mr_worker__send_turn(struct mr_worker *w)
{
    if (!w->may_send) return;
    if (w->link == LINK_OPEN) {
        send_register(w);
    } else if (w->link == LINK_REGISTERED) {
        if ((w->out_count && !mr_worker__out_may_wait(w)) || w->given.count || w->started.count ||
            w->unknown.count || w->left.count || w->missing_count ||
            mr_worker__heartbeat_due(w) <= w->now || (w->draining && !w->leaving_sent))
            send_news(w);
        if ((w->out_count && !mr_worker__out_may_wait(w)) || w->missing_count > w->missing_sent)
            w->more = true;
    }
}
