#include "services/scheduler/telemetry/trace_reader.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "host/clock.h"
#include "host/thread.h"
#include "services/scheduler/telemetry/trace_tiles.h"
#include "store/meta/redis.h"
#include "store/meta/trace/reader.h"

/* limit of the inbox; more than ASKS_MAX of trace.c, so a push never fails */
#define QUESTIONS_MAX 512
#define REPLY_TIMEOUT (2 * MR_SECOND)
/* Jobs whose timeline stays in memory, and how long after the last question. Each takes at most
 * about 130 MB: two pyramids (lib/tiles/pyramid.h) of 63 and 31 MB, 80 bytes for each slot, decoded
 * spans, and sheets. */
#define TILES_MAX 3
#define TILES_AGE (600 * MR_SECOND)

struct tiles {
    struct mr_job_tiles *job; /* NULL: free */
    mr_time used;
};

struct mr_trace_reader {
    struct mr_trace_source_config config;
    struct mr_redis *redis;
    struct mr_inbox *inbox;
    struct mr_thread *thread;
    struct tiles tiles[TILES_MAX];
};

void mr_trace_question_free(struct mr_trace_question **qp)
{
    struct mr_trace_question *q = *qp;
    *qp = NULL;
    if (!q) return;
    mr_trace_view_fini(&q->view);
    mr_trace_filter_free(&q->ask.filter);
    mr_release(q->segments);
    mr_release(q->name_space);
    mr_release(q);
}

void mr_trace_answer_free(struct mr_trace_answer **ap)
{
    struct mr_trace_answer *a = *ap;
    *ap = NULL;
    if (!a) return;
    mr_trace_gather_fini(&a->gather);
    mr_job_account_fini(&a->account);
    mr_buf_fini(&a->packed);
    mr_series_fini(&a->series);
    mr_release(a);
}

/* Returns the timeline of a job. If there is no room, the one that was not asked for the longest
 * time makes room. */
static struct mr_job_tiles *tiles_of(struct mr_trace_reader *r, mr_job_id job)
{
    struct tiles *at = &r->tiles[0];
    for (uint32_t i = 0; i < TILES_MAX; i++) {
        struct tiles *x = &r->tiles[i];
        if (x->job && mr_job_tiles_job(x->job).v == job.v) {
            x->used = mr_clock_now();
            return x->job;
        }
        if (!x->job || (at->job && x->used < at->used)) at = x;
    }
    mr_job_tiles_free(&at->job);
    at->job = mr_job_tiles_new(job, NULL);
    at->used = mr_clock_now();
    return at->job;
}

/* Frees timelines that nobody asks for. Returns when the next one is due. */
static mr_time tiles_expire(struct mr_trace_reader *r, mr_time now)
{
    mr_time due = MR_NEVER;
    for (uint32_t i = 0; i < TILES_MAX; i++) {
        struct tiles *x = &r->tiles[i];
        if (x->job && x->used + TILES_AGE <= now) mr_job_tiles_free(&x->job);
        if (x->job) due = MR_MIN(due, x->used + TILES_AGE);
    }
    return due;
}

static struct mr_trace_answer *answer(struct mr_trace_reader *r, const struct mr_trace_question *q)
{
    struct mr_trace_answer *a = mr_alloc(sizeof *a);
    const struct mr_trace_source source = {.redis = r->redis, .dir = r->config.dir};
    struct mr_trace_tally tally;
    a->ticket = q->ticket;
    mr_trace_gather_init(&a->gather, &q->ask.want);
    mr_buf_init(&a->packed, MR_MESSAGE_BYTES_MAX);
    if (q->ask.kind == MR_TRACE_ASK_ACCOUNT) {
        const struct mr_job_account_ask ask = {.job = q->ask.job,
            .name_space = q->name_space ? mr_str(q->name_space) : MR_STR(""),
            .from_ns = q->ask.from_ns,
            .until_ns = q->ask.until_ns,
            .now_ns = q->now_ns,
            .over_ns = q->over_ns,
            .segments = q->segments,
            .segments_count = q->segments_count,
            .steps_max = q->ask.steps_max};
        a->err = mr_job_account_read(&source, &q->view, &ask, &a->account);
        return a;
    }
    if (q->ask.kind == MR_TRACE_ASK_TILES) {
        struct mr_job_tiles_ask ask = q->ask.tiles;
        struct mr_job_tiles_picture picture;
        ask.segments = q->segments;
        ask.segments_count = q->segments_count;
        a->err = mr_job_tiles_draw(tiles_of(r, q->ask.job), &source, &q->view, &ask, &picture);
        if (!a->err) mr_trace_tiles_pack(&picture, &a->packed);
        mr_job_tiles_picture_fini(&picture);
        return a;
    }
    if (q->ask.want.from_ns || q->ask.want.until_ns) {
        mr_job_tiles_spans(
            tiles_of(r, q->ask.job), &source, &q->view, &a->gather, &a->not_recorded);
        return a;
    }
    if (q->ask.kind == MR_TRACE_ASK_SAMPLES) {
        mr_series_init(&a->series, &q->series);
        mr_series_read(&a->series, &source, &q->view, q->segments, q->segments_count);
        return a;
    }
    mr_trace_read(
        &source, &q->view, mr_trace_gather_wants, mr_trace_gather_span, &a->gather, &tally);
    mr_trace_gather_finish(&a->gather);
    a->not_recorded = tally.not_recorded;
    return a;
}

static void run(void *ctx)
{
    struct mr_trace_reader *r = ctx;
    struct mr_trace_question *q = NULL;
    for (;;) {
        mr_time due = tiles_expire(r, mr_clock_now());
        if (!mr_inbox_wait(r->inbox, due, &q, 1)) {
            if (mr_inbox_is_closed(r->inbox)) return;
            continue;
        }
        struct mr_trace_answer *a = answer(r, q);
        mr_trace_question_free(&q);
        struct mr_shell_message m = {.kind = MR_SHELL_TRACE, .p = a};
        if (mr_inbox_push_wait(r->config.answers, &m, mr_clock_now() + 60 * MR_SECOND))
            mr_trace_answer_free(&a); /* the process is stopping */
    }
}

int mr_trace_reader_open(
    const struct mr_trace_source_config *config, struct mr_trace_reader **out, struct mr_error *e)
{
    MR_AUTO(mr_trace_reader_close) struct mr_trace_reader *r = mr_alloc(sizeof *r);
    r->config = *config;
    const struct mr_redis_config link = {.address = config->address,
        .password = config->password,
        .reply_timeout_ns = REPLY_TIMEOUT};
    int err = mr_redis_open(&link, &r->redis, e);
    if (err) return err;
    r->inbox = mr_inbox_new(QUESTIONS_MAX, sizeof(struct mr_trace_question *));
    r->thread = mr_thread_start("trace-read", run, r);
    *out = MR_STEAL(r);
    return MR_OK;
}

void mr_trace_reader_close(struct mr_trace_reader **rp)
{
    struct mr_trace_reader *r = *rp;
    *rp = NULL;
    if (!r) return;
    if (r->inbox) mr_inbox_close(r->inbox);
    mr_thread_join(&r->thread);
    struct mr_trace_question *q = NULL;
    while (r->inbox && mr_inbox_take(r->inbox, &q, 1))
        mr_trace_question_free(&q);
    if (r->inbox) mr_inbox_free(&r->inbox);
    for (uint32_t i = 0; i < TILES_MAX; i++)
        mr_job_tiles_free(&r->tiles[i].job);
    mr_redis_close(&r->redis);
    mr_release(r);
}

void mr_trace_reader_ask(struct mr_trace_reader *r, struct mr_trace_question **q)
{
    struct mr_trace_question *given = *q;
    *q = NULL;
    /* the push cannot fail: see QUESTIONS_MAX */
    if (mr_inbox_push(r->inbox, &given)) mr_trace_question_free(&given);
}
