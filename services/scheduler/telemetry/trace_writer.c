/* Encodes and writes spans. The spans of a job form a block. A block is written when it has 64 KiB,
 * is a second old, or the job has ended. The sheet of a large block is written after the block. So
 * a scheduler that is killed loses about a second of spans, and hardly any spans of jobs that have
 * ended. The thread runs at a lower priority than all threads that work for jobs. */
#include "services/scheduler/telemetry/trace_writer.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/thread.h"
#include "services/scheduler/telemetry/trace_events.h"
#include "services/scheduler/telemetry/trace_samples.h"
#include "services/scheduler/telemetry/trace_sheets.h"

#define MESSAGES_MAX 8192
#define SPENT_MAX 8
#define BATCH_MAX 64
#define BLOCK_BYTES ((size_t)64 << 10)
#define BLOCK_AGE MR_SECOND
#define TILES_AGE (250 * MR_MS)
#define STOP_TIMEOUT (2 * MR_SECOND)

struct open_block {
    mr_job_id job;
    struct mr_trace_encoder *encoder;
    struct mr_trace_collected spans; /* for the block's sheet */
    mr_time due;
};

struct names {           /* names by the number that the core gave the worker or operator */
    struct mr_str *text; /* owned texts */
    uint32_t room;
};

struct mr_trace_writer {
    struct mr_inbox *inbox;
    struct mr_inbox *spent;
    struct mr_thread *thread;
    struct mr_trace_log *log;
    struct mr_trace_events *events;
    struct mr_trace_samples samples;
    struct mr_trace_reader *reader;
    struct names workers, ops;
    struct open_block *open;
    uint32_t open_count, open_room;
    uint32_t last; /* index in `open` of the block that got the last span */
    struct mr_trace_encoder *spare;
    struct mr_trace_collected spare_spans;
    struct mr_trace_sheets sheets;
    uint32_t epoch; /* of the scheduler */
    struct mr_counter bytes_taken;
    const char *dir; /* directory of the trace files; only for log lines, which name it */
    int said_err;    /* last state of the files that was logged: MR_OK or the error of a write */
    mr_time stop_at; /* the thread ends at this time at the latest; MR_NEVER: it runs on */
};

/* ---- names ----------------------------------------------------------------------------------- */

static struct mr_str name_of(const struct names *n, uint32_t number)
{
    return number < n->room ? n->text[number] : (struct mr_str){0};
}

/* Sets the name of `number` and takes the text. True: the number had another name. */
static bool name_set(struct names *n, uint32_t number, char *text)
{
    if (number >= n->room) {
        uint32_t more = MR_MAX(64u, number * 2);
        n->text = mr_grow(n->text, n->room * sizeof *n->text, more * sizeof *n->text);
        n->room = more;
    }
    struct mr_str old = n->text[number];
    n->text[number] = mr_str(text);
    bool changed = old.p && !mr_str_eq(old, n->text[number]);
    mr_release(mr_unconst(old.p));
    return changed;
}

static void names_fini(struct names *n)
{
    for (uint32_t i = 0; i < n->room; i++)
        mr_release(mr_unconst(n->text[i].p));
    mr_release(n->text);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Logs that files cannot be written, or can be written again, if that has changed. */
static void say_files(struct mr_trace_writer *w)
{
    struct mr_trace_log_totals totals;
    mr_trace_log_totals(w->log, &totals);
    if (totals.file_err == w->said_err) return;
    w->said_err = totals.file_err;
    if (totals.file_err == MR_EDISKFULL)
        mr_log(MR_WARN, "trace.disk_full",
            "dir=%s what=\"no space left on %s: spans that Redis may not have are not recorded\"",
            w->dir, w->dir);
    else if (totals.file_err)
        mr_log(MR_WARN, "trace.write_failed", "dir=%s what=\"%s\"", w->dir,
            mr_err_words(totals.file_err));
    else
        mr_log(MR_INFO, "trace.written_again", "dir=%s", w->dir);
}

static struct mr_str worker_name(const void *writer, uint64_t number)
{
    const struct mr_trace_writer *w = writer;
    return name_of(&w->workers, (uint32_t)number);
}

static struct mr_str op_name(const void *writer, uint64_t number)
{
    const struct mr_trace_writer *w = writer;
    return name_of(&w->ops, (uint32_t)number);
}

/* Writes a block and its sheet. */
static void block_write(struct mr_trace_writer *w, struct open_block *b)
{
    uint32_t count = mr_trace_encoder_count(b->encoder);
    if (!count) return;
    uint64_t number = mr_trace_log_add(w->log, b->job, mr_trace_encoder_end(b->encoder), count);
    const struct mr_trace_sheet_of of = {
        .id = {.job = b->job.v, .epoch = w->epoch, .number = number, .spans = count},
        .encoder = b->encoder,
        .spans = &b->spans,
        .worker = worker_name,
        .op = op_name,
        .ctx = w};
    struct mr_str sheet = number ? mr_trace_sheets_make(&w->sheets, &of) : (struct mr_str){0};
    if (sheet.n) mr_trace_log_add_sheet(w->log, b->job, sheet);
    b->spans.count = 0;
    say_files(w);
}

static void block_remove(struct mr_trace_writer *w, uint32_t at)
{
    if (w->spare) {
        mr_trace_encoder_free(&w->open[at].encoder);
        mr_trace_collected_fini(&w->open[at].spans);
    } else {
        w->spare = MR_STEAL(w->open[at].encoder);
        w->spare_spans = w->open[at].spans;
    }
    w->open[at] = w->open[--w->open_count];
    w->last = UINT32_MAX;
}

static uint32_t block_of(struct mr_trace_writer *w, mr_job_id job, mr_time now)
{
    if (w->last < w->open_count && w->open[w->last].job.v == job.v) return w->last;
    for (uint32_t i = 0; i < w->open_count; i++)
        if (w->open[i].job.v == job.v) return w->last = i;
    if (w->open_count == w->open_room) {
        uint32_t more = MR_MAX(16u, w->open_room * 2);
        w->open = mr_grow(w->open, w->open_room * sizeof *w->open, more * sizeof *w->open);
        w->open_room = more;
    }
    struct open_block *b = &w->open[w->open_count];
    *b = (struct open_block){.job = job, .due = mr_time_after(now, BLOCK_AGE)};
    if (w->spare) {
        b->encoder = MR_STEAL(w->spare);
        b->spans = w->spare_spans;
        b->spans.count = 0;
    } else {
        b->encoder = mr_trace_encoder_new();
    }
    mr_trace_encoder_begin(b->encoder, job);
    return w->last = w->open_count++;
}

static void write_due(struct mr_trace_writer *w, mr_time now)
{
    for (uint32_t i = 0; i < w->open_count;) {
        if (w->open[i].due > now) {
            i++;
            continue;
        }
        block_write(w, &w->open[i]);
        block_remove(w, i);
    }
}

static void one_span(
    struct mr_trace_writer *w, const struct mr_sched_span *in, uint64_t wall, mr_time now)
{
    struct mr_trace_span s = {.index = in->index,
        .attempt = in->attempt,
        .slot = in->slot,
        .outcome = in->outcome,
        .last_input = in->last_input,
        .op_id = in->op,
        .worker_id = in->worker,
        .op = name_of(&w->ops, in->op),
        .worker = name_of(&w->workers, in->worker),
        .ready = in->ready ? in->ready + wall : 0,
        .sent = in->sent ? in->sent + wall : 0,
        .started = in->started ? in->started + wall : 0,
        .finished = in->finished ? in->finished + wall : 0,
        .accounted = in->accounted ? in->accounted + wall : 0,
        .received = in->received ? in->received + wall : 0,
        .inputs = in->inputs ? in->inputs + wall : 0,
        .cpu_ns = in->cpu_ns,
        .input_ns = in->input_ns,
        .output_ns = in->output_ns,
        .late_ns = in->late_ns,
        .delayed_ns = in->delayed_ns,
        .room_ns = in->room_ns,
        .restore_ns = in->restore_ns,
        .training = in->training,
        .held = in->held,
        .bytes = in->bytes};
    /* A worker that registers again reports values that it holds. Their spans were recorded
     * earlier. */
    if (!in->started && in->outcome == MR_OUTCOME_OK) return;
    uint32_t at = block_of(w, in->job, now);
    struct mr_trace_encoder *e = w->open[at].encoder;
    int err = mr_trace_encoder_add(e, &s);
    if (!err) mr_trace_collect(&w->open[at].spans, e, &s);
    if (err || mr_trace_encoder_bytes(e) >= BLOCK_BYTES) {
        block_write(w, &w->open[at]);
        mr_trace_encoder_begin(e, in->job);
        if (!err) return;
        err = mr_trace_encoder_add(e, &s);
        mr_assert(!err);
        mr_trace_collect(&w->open[at].spans, e, &s);
    }
}

static void spans(struct mr_trace_writer *w, struct mr_buf *b, uint64_t wall, mr_time now)
{
    const struct mr_sched_span *in = (const void *)b->p;
    for (size_t i = 0; i < b->n / sizeof *in; i++)
        one_span(w, &in[i], wall, now);
    mr_counter_add(&w->bytes_taken, b->n);
    mr_buf_clear(b);
    if (mr_inbox_push(w->spent, &b)) { /* there are enough spare buffers */
        mr_buf_fini(b);
        mr_release(b);
    }
}

/* Writes or drops the job's open block, if the job has one. */
static void close_block(struct mr_trace_writer *w, mr_job_id job, bool write)
{
    for (uint32_t i = 0; i < w->open_count; i++)
        if (w->open[i].job.v == job.v) {
            if (write) block_write(w, &w->open[i]);
            block_remove(w, i);
            return;
        }
}

static void forget(struct mr_trace_writer *w, mr_job_id job)
{
    close_block(w, job, false);
    mr_trace_log_forget(w->log, job);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void event(struct mr_trace_writer *w, struct mr_trace_message *m, mr_time now)
{
    struct mr_trace_event_copy *e = m->p;
    mr_trace_events_take(w->events, now, &e->event);
    mr_release(e);
}

/* Writes the job's open block if it is not very young. While somebody moves through the timeline of
 * a job that runs, there are many questions a second, and the blocks would be tiny. */
static void close_block_for_tiles(struct mr_trace_writer *w, mr_job_id job, mr_time now)
{
    for (uint32_t i = 0; i < w->open_count; i++)
        if (w->open[i].job.v == job.v && w->open[i].due <= now + BLOCK_AGE - TILES_AGE) {
            close_block(w, job, true);
            return;
        }
}

/* Writes the open blocks that a picture by class needs: the slots of a job also ran other jobs.
 * While the job runs, very young blocks stay open, as in close_block_for_tiles. If the job ended
 * a short time ago, all blocks are written, because its picture is made for the last time.
 * If the job ended earlier, the open blocks are younger than its end. */
static void close_blocks_for_classes(
    struct mr_trace_writer *w, const struct mr_trace_question *q, mr_time now)
{
    if (!q->over_ns)
        write_due(w, now + BLOCK_AGE - TILES_AGE);
    else if (q->now_ns < q->over_ns + 2 * BLOCK_AGE)
        write_due(w, MR_NEVER);
}

static void ask(struct mr_trace_writer *w, struct mr_trace_question *q, mr_time now)
{
    bool is_tiles = q->ask.kind == MR_TRACE_ASK_TILES;
    bool is_class = is_tiles && q->ask.tiles.color == MR_JOB_TILES_CLASS;
    if (q->ask.kind == MR_TRACE_ASK_ACCOUNT || is_tiles) {
        if (is_class)
            close_blocks_for_classes(w, q, now);
        else if (is_tiles)
            close_block_for_tiles(w, q->ask.job, now);
        else
            write_due(w, MR_NEVER);
        mr_trace_events_flush(w->events);
        mr_trace_log_view_all(w->log, q->ask.job, &q->view);
        uint32_t count = mr_trace_log_segments(w->log, NULL, 0);
        q->segments = mr_alloc_array(MR_MAX(count, 1u), sizeof *q->segments);
        q->segments_count = mr_trace_log_segments(w->log, q->segments, count);
    } else if (q->ask.kind == MR_TRACE_ASK_SAMPLES) {
        mr_trace_log_view_all(w->log, q->ask.job, &q->view);
        uint32_t count = mr_trace_log_sample_segments(w->log, NULL, 0);
        q->segments = mr_alloc_array(MR_MAX(count, 1u), sizeof *q->segments);
        q->segments_count = mr_trace_log_sample_segments(w->log, q->segments, count);
    } else {
        if (q->ask.want.from_ns || q->ask.want.until_ns) /* a window of a timeline, as in tiles */
            close_block_for_tiles(w, q->ask.job, now);
        else
            close_block(w, q->ask.job, true);
        mr_trace_log_view(w->log, q->ask.job, &q->view);
    }
    mr_trace_reader_ask(w->reader, &q);
}

static void samples(struct mr_trace_writer *w, struct mr_buf *block, uint64_t wall)
{
    mr_trace_samples_write(&w->samples, block, wall);
    mr_buf_fini(block);
    mr_release(block);
}

static void hear(struct mr_trace_writer *w, struct mr_trace_message *m, mr_time now)
{
    switch (m->kind) {
    case MR_TRACE_SPANS: spans(w, m->p, m->a, now); break;
    case MR_TRACE_WORKER:
        if (name_set(&w->workers, (uint32_t)m->a, m->p)) write_due(w, MR_NEVER);
        break;
    case MR_TRACE_OP: (void)name_set(&w->ops, (uint32_t)m->a, m->p); break;
    case MR_TRACE_EVENT: event(w, m, now); break;
    case MR_TRACE_SAMPLES: samples(w, m->p, m->a); break;
    case MR_TRACE_LOST: mr_trace_log_lose(w->log, m->job, m->a); break;
    case MR_TRACE_ENDED: close_block(w, m->job, true); break;
    case MR_TRACE_FORGET: forget(w, m->job); break;
    case MR_TRACE_ASK: ask(w, m->p, now); break;
    case MR_TRACE_NEWS: mr_trace_log_hear(w->log, now, m->news); break;
    case MR_TRACE_STOP:
        write_due(w, MR_NEVER);
        mr_trace_events_flush(w->events);
        w->stop_at = mr_time_after(now, STOP_TIMEOUT);
        break;
    }
}

static mr_time deadline(const struct mr_trace_writer *w)
{
    mr_time t = MR_MIN(mr_trace_log_deadline(w->log), w->stop_at);
    t = MR_MIN(t, mr_trace_events_deadline(w->events));
    for (uint32_t i = 0; i < w->open_count; i++)
        t = MR_MIN(t, w->open[i].due);
    return t;
}

static void run(void *ctx)
{
    struct mr_trace_writer *w = ctx;
    struct mr_trace_message batch[BATCH_MAX];
    mr_thread_set_background();
    for (;;) {
        size_t n = mr_inbox_wait(w->inbox, deadline(w), batch, MR_ARRAY_LEN(batch));
        mr_time now = mr_clock_now();
        for (size_t i = 0; i < n; i++)
            hear(w, &batch[i], now);
        write_due(w, now);
        mr_trace_events_tick(w->events, now);
        mr_trace_log_tick(w->log, now);
        if (w->stop_at != MR_NEVER && (mr_trace_log_is_idle(w->log) || now >= w->stop_at)) return;
    }
}

/* Called on the thread of Redis's connection when Redis has answered a write. Waits for room in the
 * inbox: the log writes nothing more until it has this acknowledgement. */
static void tell(void *ctx, struct mr_trace_news news)
{
    struct mr_trace_writer *w = ctx;
    struct mr_trace_message m = {.kind = MR_TRACE_NEWS, .news = news};
    while (mr_inbox_push_wait(w->inbox, &m, mr_clock_now() + MR_SECOND))
        if (mr_inbox_is_closed(w->inbox)) {
            mr_trace_news_fini(&m.news);
            return;
        }
}

int mr_trace_writer_open(const struct mr_trace_log_config *config, struct mr_trace_reader *reader,
    struct mr_trace_writer **out, struct mr_error *e)
{
    MR_AUTO(mr_trace_writer_close) struct mr_trace_writer *w = mr_alloc(sizeof *w);
    struct mr_trace_log_config c = *config;
    w->reader = reader;
    w->dir = config->dir;
    w->stop_at = MR_NEVER;
    w->last = UINT32_MAX;
    w->epoch = config->epoch;
    mr_trace_sheets_init(&w->sheets);
    w->inbox = mr_inbox_new(MESSAGES_MAX, sizeof(struct mr_trace_message));
    w->spent = mr_inbox_new(SPENT_MAX, sizeof(struct mr_buf *));
    c.tell = tell;
    c.ctx = w;
    int err = mr_trace_log_open(&c, &w->log, e);
    if (err) return err;
    w->events = mr_trace_events_new(w->log, mr_clock_wall());
    w->samples.log = w->log;
    w->thread = mr_thread_start("trace-write", run, w);
    *out = MR_STEAL(w);
    return MR_OK;
}

static void message_free(struct mr_trace_message *m)
{
    struct mr_trace_question *q = m->p;
    switch (m->kind) {
    case MR_TRACE_SPANS:
    case MR_TRACE_SAMPLES:
        mr_buf_fini(m->p);
        mr_release(m->p);
        break;
    case MR_TRACE_WORKER:
    case MR_TRACE_OP:
    case MR_TRACE_EVENT: mr_release(m->p); break;
    case MR_TRACE_ASK: mr_trace_question_free(&q); break;
    case MR_TRACE_NEWS: mr_trace_news_fini(&m->news); break;
    case MR_TRACE_LOST:
    case MR_TRACE_ENDED:
    case MR_TRACE_FORGET:
    case MR_TRACE_STOP: break;
    }
}

void mr_trace_writer_close(struct mr_trace_writer **wp)
{
    struct mr_trace_writer *w = *wp;
    *wp = NULL;
    if (!w) return;
    const struct mr_trace_message stop = {.kind = MR_TRACE_STOP};
    if (w->thread) (void)mr_inbox_push_wait(w->inbox, &stop, MR_NEVER);
    mr_thread_join(&w->thread);
    mr_inbox_close(w->inbox);
    mr_trace_events_free(&w->events);
    mr_trace_log_close(&w->log);
    struct mr_trace_message m;
    struct mr_buf *b = NULL;
    while (mr_inbox_take(w->inbox, &m, 1))
        message_free(&m);
    while (mr_inbox_take(w->spent, &b, 1)) {
        mr_buf_fini(b);
        mr_release(b);
    }
    for (uint32_t i = 0; i < w->open_count; i++) {
        mr_trace_encoder_free(&w->open[i].encoder);
        mr_trace_collected_fini(&w->open[i].spans);
    }
    if (w->spare) mr_trace_collected_fini(&w->spare_spans);
    mr_trace_encoder_free(&w->spare);
    mr_trace_sheets_fini(&w->sheets);
    mr_release(w->open);
    names_fini(&w->workers);
    names_fini(&w->ops);
    mr_inbox_free(&w->inbox);
    mr_inbox_free(&w->spent);
    mr_release(w);
}

struct mr_inbox *mr_trace_writer_inbox(struct mr_trace_writer *w)
{
    return w->inbox;
}

struct mr_inbox *mr_trace_writer_spent(struct mr_trace_writer *w)
{
    return w->spent;
}

uint64_t mr_trace_writer_bytes_taken(const struct mr_trace_writer *w)
{
    return mr_counter_get(&w->bytes_taken);
}
