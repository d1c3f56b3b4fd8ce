/* What waits to be sent to the scheduler: completions, answers, missing inputs. The outbox outlives
 * connections. When it is full, the core closes the stream and opens another one. Register and its
 * answer then reconcile both sides. */
#include "services/worker/core/internal.h"

#define HOLD (3 * MR_MS)
/* Limit of the time for which completions wait in the outbox for more completions. Let T be the
 * time for which the queued tasks keep the slots busy: completions wait for T / 2 or T - ENOUGH,
 * whichever is longer. */
#define HOLD_MAX (24 * MR_MS)
#define ENOUGH (8 * MR_MS)
#define HOLD_ROWS 1024u

static uint32_t out_room(const struct mr_worker *w)
{
    return w->config.outbox_max + w->config.tasks_max;
}

static struct outrow *out_at(struct mr_worker *w, uint32_t i)
{
    return &w->outbox[(w->out_head + i) % out_room(w)];
}

static struct outparts *parts_at(struct mr_worker *w, uint32_t i)
{
    return &w->out_parts[(w->out_head + i) % out_room(w)];
}

static void row_put(struct mr_worker *w, struct outrow *r)
{
    mr_worker__blob_put(&w->pool, &r->blob);
    mr_worker__blob_put(&w->pool, &r->failure);
}

struct outrow *mr_worker__out_add(
    struct mr_worker *w, mr_job_id job, uint32_t index, uint32_t attempt, enum mr_outcome outcome)
{
    if (w->out_count == out_room(w)) {
        w->overflow = true;
        row_put(w, out_at(w, --w->out_count));
    }
    if (!w->out_count) {
        /* starts at the first row again, so that few pages are touched while sending keeps up */
        w->out_head = 0;
        mr_duration all = w->queue_cost_ns / w->config.slots;
        mr_duration hold = MR_MAX(all / 2, all - MR_MIN(all, (mr_duration)ENOUGH));
        w->out_until = mr_time_after(w->now, MR_MAX(HOLD, MR_MIN(hold, HOLD_MAX)));
    }
    w->out_urgent = true;
    struct outrow *r = out_at(w, w->out_count++);
    *r = (struct outrow){.job = job, .index = index, .attempt = attempt, .outcome = outcome};
    return r;
}

/* True: the rows of the outbox may wait for more rows, because all slots have work and no other
 * process waits for a reported value. Each message costs the worker and the scheduler a wake-up, of
 * tens of microseconds of processor time. */
bool mr_worker__out_may_wait(const struct mr_worker *w)
{
    return !w->out_urgent && w->now < w->out_until && w->tasks_count >= 2 * w->config.slots &&
           w->out_count < MR_MIN(HOLD_ROWS, w->config.outbox_max) && !w->draining;
}

struct outrow *mr_worker__out_last(struct mr_worker *w)
{
    mr_assert(w->out_count);
    return out_at(w, w->out_count - 1);
}

void mr_worker__out_parts(struct mr_worker *w, const struct outparts *parts)
{
    mr_worker__out_last(w)->has_parts = true;
    *parts_at(w, w->out_count - 1) = *parts;
}

void mr_worker__out_failure(struct mr_worker *w, struct outrow *r, int code, struct mr_str message,
    struct mr_str arguments, struct mr_str log)
{
    message.n = MR_MIN(message.n, MR_ERROR_TEXT_MAX);
    arguments.n = MR_MIN(arguments.n, MR_ERROR_TEXT_MAX);
    if (log.n > MR_TASK_LOG_BYTES_MAX) { /* the end of the log says most */
        log.p += log.n - MR_TASK_LOG_BYTES_MAX;
        log.n = MR_TASK_LOG_BYTES_MAX;
    }
    size_t n = message.n + arguments.n + log.n;
    struct mr_blob *b = mr_worker__blob_new(&w->pool, sizeof(struct failure) + n);
    if (!b) return; /* the pool is full: the outcome is reported without texts */
    struct failure *f = mr_worker__blob_at(b);
    *f = (struct failure){.code = code,
        .message_bytes = (uint32_t)message.n,
        .arguments_bytes = (uint32_t)arguments.n,
        .log_bytes = (uint32_t)log.n};
    char *p = (char *)(f + 1);
    if (message.n) memcpy(p, message.p, message.n);
    if (arguments.n) memcpy(p + message.n, arguments.p, arguments.n);
    if (log.n) memcpy(p + message.n + arguments.n, log.p, log.n);
    r->failure = b;
}

struct outrow mr_worker__out_row(const struct mr_worker *w, const struct value *v)
{
    return (struct outrow){.job = value_job(w, v),
        .index = v->index,
        .attempt = v->attempt,
        .slot = v->slot,
        .outcome = MR_OUTCOME_OK,
        .blob = mr_worker__blob_ref(v->blob),
        .object = v->object,
        .object_bytes = v->object_bytes,
        .started_ns = v->started_ns,
        .duration_ns = v->duration_ns,
        .cpu_ns = v->cpu_ns};
}

void mr_worker__out_held(struct mr_worker *w, struct value *v)
{
    *mr_worker__out_add(w, value_job(w, v), v->index, v->attempt, MR_OUTCOME_OK) =
        mr_worker__out_row(w, v);
    v->reported = true;
}

void mr_worker__out_clear(struct mr_worker *w)
{
    for (; w->out_count; w->out_count--)
        row_put(w, mr_worker__out_last(w));
    w->out_urgent = false;
    for (uint32_t i = w->missing_sent; i < w->missing_count; i++)
        mr_worker__blob_put(&w->pool, &w->missing[i].why);
    w->missing_count = w->missing_sent;
}

void mr_worker__out_drop_reported(struct mr_worker *w)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->out_count; i++) {
        struct outrow *r = out_at(w, i);
        uint32_t value =
            r->outcome == MR_OUTCOME_OK ? mr_worker__value_find(w, r->job, r->index) : NONE;
        /* Register does not list an attempt that ended without a value, so the scheduler may send
         * the task again. A new scheduler may even use the same attempt number. The old completion
         * would then end the new attempt, so the completion is dropped. */
        bool is_reported = r->outcome != MR_OUTCOME_OK;
        if (value != NONE && w->values[value].made && w->values[value].attempt == r->attempt)
            is_reported = true;
        if (is_reported) {
            row_put(w, r);
            continue;
        }
        if (r->has_parts) *parts_at(w, kept) = *parts_at(w, i);
        *out_at(w, kept++) = *r;
    }
    w->out_count = kept;
}

void mr_worker__answer_add(
    struct mr_worker *w, struct refs *a, mr_job_id job, uint32_t index, uint32_t attempt)
{
    if (a->count == a->room) {
        w->overflow = true;
        return;
    }
    if (!a->runs_count || a->runs[a->runs_count - 1].job.v != job.v)
        a->runs[a->runs_count++] = (struct mr_ws_run){.job = job};
    a->runs[a->runs_count - 1].count++;
    a->index[a->count] = index;
    a->attempt[a->count++] = attempt;
}

void mr_worker__missing_add(struct mr_worker *w, const struct missing_row *row)
{
    if (w->missing_count == ANSWERS_MAX) {
        struct mr_blob *why = row->why;
        mr_worker__blob_put(&w->pool, &why);
        w->overflow = true;
        return;
    }
    w->missing[w->missing_count++] = *row;
}

void mr_worker__out_fetch(struct mr_worker *w, const struct mr_ws_refs *m)
{
    struct mr_ws_walk walk = {.runs = m->runs};
    for (uint32_t i = 0; i < m->count; i++) {
        mr_job_id job = mr_ws_walk_next(&walk);
        uint32_t attempt = mr_ws_attempt_of(m, i);
        uint32_t value = mr_worker__value_find(w, job, m->index[i]);
        struct value *v = value == NONE ? NULL : &w->values[value];
        if (v && v->made && (!attempt || attempt == v->attempt)) {
            mr_worker__out_held(w, v);
            /* no answer for a value that is being made: its completion will answer */
        } else if (!v || v->task == NONE) {
            mr_worker__answer_add(w, &w->unknown, job, m->index[i], attempt);
        }
    }
}
