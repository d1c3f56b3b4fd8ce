/* The core thread's side of traces. Spans go to a buffer. The buffer goes to the writer thread when
 * it is large or 50 ms old. If the writer falls too far behind, spans are dropped and counted.
 * Calls that ask for spans wait here for the answer of the reader thread. */
#include "services/scheduler/telemetry/trace.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "account/training_shares.h"
#include "host/clock.h"
#include "services/scheduler/base/job_lookup.h"
#include "services/scheduler/telemetry/trace_profile.h"
#include "services/scheduler/telemetry/trace_samples.h"
#include "services/scheduler/telemetry/trace_tiles.h"
#include "services/scheduler/telemetry/trace_writer.h"

#define PENDING_BYTES ((size_t)128 << 10)
#define PENDING_BYTES_MAX ((size_t)64 << 20)
#define PENDING_AGE (50 * MR_MS)
#define QUEUED_BYTES_MAX ((uint64_t)64 << 20)
#define CHANGES_BYTES_MAX ((size_t)16 << 20)
/* Limit of open questions. Open questions share the blocks of spans that are not written yet
 * (store/meta/trace/view.h). */
#define ASKS_MAX 64
#define PAGE_BYTES_MAX ((size_t)8 << 20) /* limit of one page of a timeline */
#define SPAN_BYTES 144 /* estimate of the memory of a span in a message, without its texts */

struct asked {
    uint64_t ticket;
    struct mr_rpc_call *call; /* NULL: the call has ended */
    struct mr_trace_ask ask;
};

struct lost {
    mr_job_id job;
    uint64_t count;
};

struct mr_trace {
    struct mr_trace_writer *writer;
    struct mr_trace_reader *reader;
    struct mr_inbox *inbox; /* the writer's inbox */
    char *dir;
    struct mr_buf *pending; /* struct mr_sched_span each; NULL: there are no pending spans */
    mr_time pending_since;
    uint64_t bytes_given; /* bytes of spans that the writer was given since the start */
    uint32_t ops_told;
    /* struct lost each: how many spans of a job were dropped; the writer was not told yet */
    struct mr_buf lost;
    /* struct mr_trace_message each: beginnings and ends of jobs, and events; the writer gets them
     * after the pending spans */
    struct mr_buf changes;
    struct asked asks[ASKS_MAX];
    uint32_t asks_count;
    uint64_t ticket;
};

static void jobs_of(const struct mr_sched *core, struct mr_buf *out)
{
    for (mr_job_id j = mr_sched_job_newest(core); j.v; j = mr_sched_job_older(core, j))
        mr_buf_add(out, &j, sizeof j);
}

/* Queues a message for the next tick. Sent at once, the messages of a stream of tiny jobs would
 * wake the writer for each job, and each would be a write to Redis. */
static void change_add(struct mr_shell *sh, const struct mr_trace_message *m)
{
    struct mr_trace *t = sh->trace;
    if (mr_trace_deadline(sh) == MR_NEVER) t->pending_since = mr_clock_now();
    if (t->changes.n + sizeof *m > CHANGES_BYTES_MAX)
        mr_release(m->p);
    else
        mr_buf_add(&t->changes, m, sizeof *m);
}

static void event_add(struct mr_shell *sh, const struct mr_trace_event *e)
{
    struct mr_str name = e->name, space = e->name_space;
    struct mr_trace_event_copy *copy = mr_alloc(sizeof *copy + name.n + space.n);
    copy->event = *e;
    if (name.n) memcpy(copy->texts, name.p, name.n);
    if (space.n) memcpy(copy->texts + name.n, space.p, space.n);
    copy->event.name = mr_str_of(copy->texts, name.n);
    copy->event.name_space = mr_str_of(copy->texts + name.n, space.n);
    change_add(sh, &(struct mr_trace_message){.kind = MR_TRACE_EVENT, .p = copy});
}

static void accepted_add(
    struct mr_shell *sh, const struct mr_sched_job_info *info, uint64_t at, struct mr_str client)
{
    const struct mr_trace_event e = {.kind = MR_TRACE_EVENT_ACCEPTED,
        .at = at,
        .since = info->created_wall_ns,
        .job = info->id,
        .name = client,
        .name_space = info->graph->job.name_space};
    event_add(sh, &e);
}

/* Reports a job of the journal. It was accepted before this process began. */
static void job_restored(struct mr_shell *sh, mr_job_id job)
{
    struct mr_sched_job_info info;
    if (!mr_sched_job(sh->core, job, &info) || mr_job_is_over(info.state)) return;
    accepted_add(sh, &info, info.created_wall_ns, MR_STR(""));
}

int mr_trace_open(struct mr_shell *sh, struct mr_error *e)
{
    const struct mr_scheduler_options *o = &sh->options;
    struct mr_buf jobs;
    struct mr_trace *t = mr_alloc(sizeof *t);
    sh->trace = t;
    mr_buf_init(&t->lost, (size_t)1 << 20);
    mr_buf_init(&t->changes, CHANGES_BYTES_MAX);
    mr_buf_init(&jobs, (size_t)64 << 20);
    if (o->dir) t->dir = mr_format("%s/trace", o->dir);
    const struct mr_trace_source_config source = {
        .address = o->redis, .password = o->redis_password, .dir = t->dir, .answers = sh->inbox};
    int err = mr_trace_reader_open(&source, &t->reader, e);
    jobs_of(sh->core, &jobs);
    const struct mr_trace_log_config log = {.address = o->redis,
        .password = o->redis_password,
        .dir = t->dir,
        .epoch = o->core.epoch,
        .incarnation = o->core.incarnation,
        .job_bytes_max = o->trace_job_bytes,
        .bytes_max = o->trace_bytes,
        .file_bytes_max = o->trace_file_bytes,
        .jobs = (const void *)jobs.p,
        .jobs_count = jobs.n / sizeof(mr_job_id)};
    if (!err) err = mr_trace_writer_open(&log, t->reader, &t->writer, e);
    if (!err) t->inbox = mr_trace_writer_inbox(t->writer);
    const mr_job_id *known = (const void *)jobs.p;
    for (size_t i = 0; !err && i < jobs.n / sizeof *known; i++)
        job_restored(sh, known[i]);
    mr_buf_fini(&jobs);
    return err;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void count_lost(struct mr_trace *t, const struct mr_buf *b)
{
    const struct mr_sched_span *s = (const void *)b->p;
    struct lost l = {0};
    for (size_t i = 0; i < b->n / sizeof *s; i++) {
        if (l.count && l.job.v != s[i].job.v) {
            mr_buf_add(&t->lost, &l, sizeof l);
            l.count = 0;
        }
        l.job = s[i].job;
        l.count++;
    }
    if (l.count) mr_buf_add(&t->lost, &l, sizeof l);
}

static void buf_skip(struct mr_buf *b, size_t n)
{
    b->n -= n;
    if (n) b->failed = false; /* the buffer has room again */
    if (b->n && n) memmove(b->p, b->p + n, b->n);
}

static void lost_tell(struct mr_trace *t)
{
    const struct lost *l = (const void *)t->lost.p;
    size_t told = 0;
    for (size_t n = t->lost.n / sizeof *l; told < n; told++) {
        const struct mr_trace_message m = {
            .kind = MR_TRACE_LOST, .job = l[told].job, .a = l[told].count};
        if (mr_inbox_push(t->inbox, &m)) break;
    }
    buf_skip(&t->lost, told * sizeof *l);
}

static void spans_give(struct mr_trace *t)
{
    struct mr_trace_message m = {
        .kind = MR_TRACE_SPANS, .p = t->pending, .a = mr_clock_wall() - mr_clock_now()};
    size_t n = t->pending->n;
    bool full = t->bytes_given + n - mr_trace_writer_bytes_taken(t->writer) > QUEUED_BYTES_MAX;
    if (full || mr_inbox_push(t->inbox, &m)) {
        count_lost(t, t->pending);
        mr_buf_clear(t->pending);
        return;
    }
    t->bytes_given += n;
    t->pending = NULL;
}

static void pending_give(struct mr_trace *t)
{
    const struct mr_trace_message *changes = (const void *)t->changes.p;
    if (t->lost.n) lost_tell(t);
    if (t->pending && t->pending->n) spans_give(t);
    size_t told = 0;
    while (told < t->changes.n / sizeof *changes && !mr_inbox_push(t->inbox, &changes[told]))
        told++;
    buf_skip(&t->changes, told * sizeof *changes); /* what stays is sent at the next tick */
}

static struct mr_buf *pending_of(struct mr_trace *t)
{
    if (t->pending) return t->pending;
    if (!mr_inbox_take(mr_trace_writer_spent(t->writer), &t->pending, 1)) {
        t->pending = mr_alloc(sizeof *t->pending);
        mr_buf_init(t->pending, PENDING_BYTES_MAX);
    }
    return t->pending;
}

static void ops_tell(struct mr_shell *sh)
{
    struct mr_trace *t = sh->trace;
    for (uint32_t n = mr_sched_ops_count(sh->core); t->ops_told < n; t->ops_told++) {
        struct mr_str name = mr_sched_op_name(sh->core, t->ops_told + 1);
        struct mr_trace_message m = {
            .kind = MR_TRACE_OP, .a = t->ops_told + 1, .p = mr_format("%.*s", MR_STR_ARG(name))};
        if (mr_inbox_push(t->inbox, &m)) {
            mr_release(m.p);
            return;
        }
    }
}

void mr_trace_add(struct mr_shell *sh)
{
    const struct mr_buf *in = &sh->fx.spans;
    struct mr_trace *t = sh->trace;
    if (!in->n) return;
    struct mr_buf *b = pending_of(t);
    if (!b->n && !t->changes.n) t->pending_since = mr_clock_now();
    if (b->n + in->n > PENDING_BYTES_MAX)
        count_lost(t, in);
    else
        mr_buf_add(b, in->p, in->n);
    if (b->n < PENDING_BYTES) return;
    ops_tell(sh);
    pending_give(t);
}

mr_time mr_trace_deadline(const struct mr_shell *sh)
{
    const struct mr_trace *t = sh->trace;
    bool some = t->pending && t->pending->n;
    return some || t->lost.n || t->changes.n ? mr_time_after(t->pending_since, PENDING_AGE)
                                             : MR_NEVER;
}

void mr_trace_tick(struct mr_shell *sh, mr_time now)
{
    struct mr_trace *t = sh->trace;
    if (mr_trace_deadline(sh) > now) return;
    ops_tell(sh);
    pending_give(t);
    /* the next tick tries again to push what found no room in the writer's inbox */
    t->pending_since = now;
}

static void block_free(struct mr_buf *block)
{
    mr_buf_fini(block);
    mr_release(block);
}

void mr_trace_samples_give(struct mr_shell *sh, struct mr_buf **block)
{
    struct mr_buf *b = MR_STEAL(*block);
    const struct mr_trace_message m = {.kind = MR_TRACE_SAMPLES, .p = b, .a = mr_clock_wall()};
    if (mr_inbox_push(sh->trace->inbox, &m)) block_free(b);
}

void mr_trace_worker(struct mr_shell *sh, uint32_t slot, mr_time began, uint32_t processors)
{
    struct mr_sched_worker_info info;
    struct mr_trace *t = sh->trace;
    if (!mr_sched_worker(sh->core, slot, &info)) return;
    ops_tell(sh);
    pending_give(t); /* the spans are of the worker that had the slot before */
    struct mr_trace_message m = {
        .kind = MR_TRACE_WORKER, .a = slot, .p = mr_format("%.*s", MR_STR_ARG(info.name))};
    if (mr_inbox_push(t->inbox, &m)) mr_release(m.p);
    struct mr_trace_event e = {.kind = MR_TRACE_EVENT_JOINED,
        .at = mr_clock_wall(),
        .incarnation = info.incarnation,
        .slots = info.slots,
        .processors = processors,
        .name = info.name};
    uint64_t wall = mr_clock_wall() - mr_clock_now();
    if (began) e.since = began + (uint64_t)mr_sched_clock_offset(sh->core, slot) + wall;
    event_add(sh, &e);
}

void mr_trace_job_accepted(struct mr_shell *sh, mr_job_id job, struct mr_str client)
{
    struct mr_sched_job_info info;
    if (mr_sched_job(sh->core, job, &info)) accepted_add(sh, &info, mr_clock_wall(), client);
}

void mr_trace_job_changed(struct mr_shell *sh, mr_job_id job)
{
    struct mr_sched_job_info info;
    if (!mr_sched_job(sh->core, job, &info) || !mr_job_is_over(info.state)) return;
    const struct mr_trace_event e = {.kind = MR_TRACE_EVENT_OVER,
        .at = mr_clock_wall(),
        .since = info.finished_wall_ns,
        .job = job};
    event_add(sh, &e);
    change_add(sh, &(struct mr_trace_message){.kind = MR_TRACE_ENDED, .job = job});
}

void mr_trace_forget(struct mr_shell *sh, mr_job_id job)
{
    change_add(sh, &(struct mr_trace_message){.kind = MR_TRACE_FORGET, .job = job});
}

void mr_trace_worker_gone(struct mr_shell *sh, uint32_t slot, uint64_t incarnation)
{
    struct mr_sched_worker_info info;
    struct mr_str name = {0};
    if (mr_sched_worker(sh->core, slot, &info) && info.incarnation == incarnation) name = info.name;
    const struct mr_trace_event e = {.kind = MR_TRACE_EVENT_GONE,
        .at = mr_clock_wall(),
        .incarnation = incarnation,
        .name = name};
    event_add(sh, &e);
}

void mr_trace_paused(struct mr_shell *sh, mr_time from, mr_time until)
{
    uint64_t wall = mr_clock_wall() - mr_clock_now();
    const struct mr_trace_event e = {
        .kind = MR_TRACE_EVENT_PAUSED, .since = from + wall, .at = until + wall};
    event_add(sh, &e);
}

void mr_trace_worker_paused(struct mr_shell *sh, uint32_t slot, mr_time from, mr_time until)
{
    struct mr_sched_worker_info info;
    if (!mr_sched_worker(sh->core, slot, &info)) return;
    uint64_t wall =
        mr_clock_wall() - mr_clock_now() + (uint64_t)mr_sched_clock_offset(sh->core, slot);
    const struct mr_trace_event e = {.kind = MR_TRACE_EVENT_PAUSED,
        .since = from + wall,
        .at = until + wall,
        .incarnation = info.incarnation,
        .name = info.name};
    event_add(sh, &e);
}

/* ---- questions ------------------------------------------------------------------------------- */

void mr_trace_filter_free(struct mr_trace_filter **fp)
{
    struct mr_trace_filter *f = *fp;
    *fp = NULL;
    if (!f) return;
    for (size_t i = 0; i < f->workers_count; i++)
        mr_release(f->workers[i]);
    mr_release(f->workers);
    mr_release(f->slots);
    mr_release(f);
}

void mr_trace_ask(struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_ask *ask)
{
    struct mr_trace *t = sh->trace;
    struct mr_trace_question *q = mr_alloc(sizeof *q);
    struct mr_trace_message m = {.kind = MR_TRACE_ASK, .p = q};
    q->ask = *ask;
    q->ask.want.filter = ask->filter;
    q->ticket = ++t->ticket;
    mr_trace_view_init(&q->view, ask->job);
    struct mr_sched_job_info info;
    if (mr_sched_job(sh->core, ask->job, &info)) {
        q->ask.from_ns = info.created_wall_ns;
        q->over_ns = mr_job_is_over(info.state) ? info.finished_wall_ns : 0;
    }
    q->now_ns = mr_clock_wall();
    q->ask.tiles.now_ns = q->now_ns;
    q->ask.tiles.submitted_ns = q->ask.from_ns;
    q->ask.tiles.over_ns = q->over_ns;
    if (ask->series) q->series = *ask->series;
    q->ask.series = NULL;
    if (ask->name_space.n) q->name_space = mr_format("%.*s", MR_STR_ARG(ask->name_space));
    q->ask.name_space = (struct mr_str){0};
    ops_tell(sh);
    pending_give(t);
    if (t->asks_count == ASKS_MAX || mr_inbox_push(t->inbox, &m)) {
        mr_trace_question_free(&q);
        mr_shell_fail(call, MR_ELIMIT, "more than %d traces are being read: ask again", ASKS_MAX);
        return;
    }
    t->asks[t->asks_count] = (struct asked){.ticket = t->ticket, .call = call, .ask = *ask};
    t->asks[t->asks_count].ask.name_space = (struct mr_str){0};
    t->asks[t->asks_count++].ask.series = NULL;
}

void mr_trace_call_done(struct mr_shell *sh, const struct mr_rpc_call *call)
{
    struct mr_trace *t = sh->trace;
    for (uint32_t i = 0; t && i < t->asks_count; i++)
        if (t->asks[i].call == call)
            /* the question still counts against ASKS_MAX until the reader answers */
            t->asks[i].call = NULL;
}

static Millrace__V1__SpanOutcome outcome_of(uint32_t outcome)
{
    switch ((enum mr_outcome)outcome) { /* read from a trace: may be any number */
    case MR_OUTCOME_OK:
    case MR_OUTCOME_USED_UP: return MILLRACE__V1__SPAN_OUTCOME__SPAN_OUTCOME_OK;
    case MR_OUTCOME_ERROR:
    case MR_OUTCOME_BAD_ARGUMENT: return MILLRACE__V1__SPAN_OUTCOME__SPAN_OUTCOME_FAILED;
    case MR_OUTCOME_CANCELLED: return MILLRACE__V1__SPAN_OUTCOME__SPAN_OUTCOME_CANCELLED;
    case MR_OUTCOME_TIMEOUT: return MILLRACE__V1__SPAN_OUTCOME__SPAN_OUTCOME_TIMEOUT;
    case MR_OUTCOME_LOST: return MILLRACE__V1__SPAN_OUTCOME__SPAN_OUTCOME_LOST;
    case MR_OUTCOME_LOST_INPUT:
    case MR_OUTCOME_RETURNED:
    case MR_OUTCOME_NO_ROOM: return MILLRACE__V1__SPAN_OUTCOME__SPAN_OUTCOME_RETURNED;
    }
    return MILLRACE__V1__SPAN_OUTCOME__SPAN_OUTCOME_UNSPECIFIED;
}

static Millrace__V1__SpanHeld held_of(uint32_t held)
{
    if (held == MR_TRACE_HELD_MEMORY) return MILLRACE__V1__SPAN_HELD__SPAN_HELD_MEMORY;
    if (held == MR_TRACE_HELD_RESTRICTED) return MILLRACE__V1__SPAN_HELD__SPAN_HELD_RESTRICTED;
    return MILLRACE__V1__SPAN_HELD__SPAN_HELD_UNSPECIFIED;
}

static Millrace__V1__TimelineSpan *span_out(struct mr_shell *sh,
    const struct mr_sched_job_info *info, const struct mr_trace_gather *g,
    const struct mr_trace_span *s)
{
    Millrace__V1__TimelineSpan *m = mr_shell_take(sh, sizeof *m);
    Millrace__V1__TaskTimes *times = mr_shell_take(sh, sizeof *times);
    millrace__v1__timeline_span__init(m);
    millrace__v1__task_times__init(times);
    /* the number is read from a trace, so it may be any */
    bool known = s->index < info->graph->nodes_count;
    m->key = mr_shell_text(sh, known ? mr_graph_key(info->graph, s->index) : MR_STR(""));
    m->op = mr_shell_text(sh, g->ops.names[s->op_id]);
    m->worker = mr_shell_text(sh, g->workers.names[s->worker_id]);
    m->slot = s->slot;
    m->attempt = s->attempt;
    m->outcome = outcome_of(s->outcome);
    m->failed = s->outcome != MR_OUTCOME_OK;
    m->cpu_ns = s->cpu_ns;
    m->nbytes = s->bytes;
    m->input_ns = s->input_ns;
    m->output_ns = s->output_ns;
    m->late_ns = s->late_ns;
    m->delayed_ns = s->delayed_ns;
    m->room_ns = s->room_ns;
    m->restore_ns = s->restore_ns;
    mr_duration ran = s->finished > s->started ? s->finished - s->started : 0;
    m->feed_ns = mr_training_part_ns(s->training, MR_TRAINING_FEED, ran);
    m->pull_ns = mr_training_part_ns(s->training, MR_TRAINING_PULL, ran);
    m->push_ns = mr_training_part_ns(s->training, MR_TRAINING_PUSH, ran);
    m->wait_ns = mr_training_part_ns(s->training, MR_TRAINING_WAIT, ran);
    m->held = held_of(s->held);
    m->times = times;
    times->ready_ns = s->ready;
    times->sent_ns = s->sent;
    times->started_ns = s->started;
    times->finished_ns = s->finished;
    times->accounted_ns = s->accounted;
    times->received_ns = s->received;
    times->inputs_ns = s->inputs;
    return m;
}

/* Returns how many spans go into the message. Spans that ended at the same time stay on one page,
 * since the next page begins after that time. `*more`: some spans are left. */
static uint32_t page_of(
    const struct mr_sched_job_info *info, const struct mr_trace_gather *g, bool *more)
{
    size_t bytes = 0;
    uint32_t n = 0;
    for (; n < g->count && bytes <= PAGE_BYTES_MAX; n++) {
        uint32_t index = g->spans[n].index;
        bytes += SPAN_BYTES + g->ops.names[g->spans[n].op_id].n +
                 g->workers.names[g->spans[n].worker_id].n;
        if (index < info->graph->nodes_count) bytes += mr_graph_key(info->graph, index).n;
    }
    *more = g->more || n < g->count;
    uint32_t all = n;
    while (n < g->count && n > 0 && g->spans[n - 1].finished == g->spans[n].finished)
        n--;
    /* If spans that ended at the same time fill a whole page (8 MiB), n is 0 here. The page then
     * has those that fit, and the next page misses the others. */
    return n ? n : all;
}

static void timeline_answer(struct mr_shell *sh, struct mr_rpc_call *call,
    const struct mr_sched_job_info *info, const struct mr_trace_answer *a)
{
    Millrace__V1__TimelineResponse m = MILLRACE__V1__TIMELINE_RESPONSE__INIT;
    bool more = false;
    m.n_spans = page_of(info, &a->gather, &more);
    m.more = more;
    m.not_recorded = a->not_recorded;
    m.spans = mr_shell_take(sh, m.n_spans * sizeof *m.spans);
    for (size_t i = 0; i < m.n_spans; i++)
        m.spans[i] = span_out(sh, info, &a->gather, &a->gather.spans[i]);
    (void)mr_rpc_call_reply_pb(call, &m.base);
}

void mr_trace_answered(struct mr_shell *sh, struct mr_trace_answer **ap)
{
    MR_AUTO(mr_trace_answer_free) struct mr_trace_answer *a = MR_STEAL(*ap);
    struct mr_trace *t = sh->trace;
    uint32_t i = 0;
    while (i < t->asks_count && t->asks[i].ticket != a->ticket)
        i++;
    mr_assert(i < t->asks_count);
    struct asked x = t->asks[i];
    t->asks[i] = t->asks[--t->asks_count];
    if (!x.call) return; /* the client is gone */
    struct mr_sched_job_info info;
    struct mr_trace_gather *g = &a->gather;
    mr_pb_arena_clear(&sh->scratch);
    if (x.ask.job.v && !mr_sched_job(sh->core, x.ask.job, &info)) {
        mr_shell_fail(x.call, MR_ENOENT, "the job was forgotten meanwhile");
        return;
    }
    if (x.ask.kind == MR_TRACE_ASK_ACCOUNT) {
        if (x.ask.on_account)
            x.ask.on_account(sh, x.call, a->err, &a->account);
        else
            mr_trace_profile_answer(sh, x.call, x.ask.job.v ? info.graph : NULL, a);
        return;
    }
    if (x.ask.kind == MR_TRACE_ASK_TILES) {
        mr_trace_tiles_answer(x.call, a);
        return;
    }
    if (x.ask.kind == MR_TRACE_ASK_SAMPLES) {
        mr_trace_samples_answer(sh, x.call, a);
        return;
    }
    switch (x.ask.want.kind) {
    case MR_TRACE_TIMELINE: timeline_answer(sh, x.call, &info, a); break;
    case MR_TRACE_TASK:
        if (g->count) g->spans[0].worker = g->workers.names[g->spans[0].worker_id];
        x.ask.on_task(sh, x.call, x.ask.job, x.ask.want.index, g->count ? &g->spans[0] : NULL);
        break;
    }
}

void mr_trace_close(struct mr_trace **tp)
{
    struct mr_trace *t = *tp;
    *tp = NULL;
    if (!t) return;
    if (t->writer) pending_give(t);
    mr_trace_writer_close(&t->writer);
    mr_trace_reader_close(&t->reader);
    if (t->pending) mr_buf_fini(t->pending);
    mr_release(t->pending);
    const struct mr_trace_message *changes = (const void *)t->changes.p;
    for (size_t i = 0; i < t->changes.n / sizeof *changes; i++)
        mr_release(changes[i].p);
    mr_buf_fini(&t->lost);
    mr_buf_fini(&t->changes);
    mr_release(t->dir);
    mr_release(t);
}
