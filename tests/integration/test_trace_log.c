/* Tests store/meta/trace/log with a real redis-server on a private socket. Each span is read back
 * once. When a limit is reached, a block of spans goes to a file or is counted as lost. No caller
 * waits for Redis. */
#include "host/clock.h"
#include "host/inbox.h"
#include "store/meta/redis.h"
#include "store/meta/trace/events.h"
#include "store/meta/trace/reader.h"
#include "store/meta/trace/samples.h"
#include "tests/integration/redis_rig.h"

#include <stdio.h>
#include <stdlib.h>

#define JOB ((mr_job_id){(uint64_t)1 << 32 | 7})
#define OTHER ((mr_job_id){(uint64_t)1 << 32 | 8})

struct fixture {
    struct redis_rig server;
    char files[128];
    struct mr_inbox *news;
    struct mr_trace_log *log;
    struct mr_trace_log_config config;
    struct mr_redis *reader;
    uint32_t next; /* index of the next span */
};

static void tell(void *ctx, struct mr_trace_news news)
{
    struct fixture *f = ctx;
    if (mr_inbox_push(f->news, &news)) mr_trace_news_fini(&news);
}

static void log_open(struct fixture *f)
{
    f->config.address = f->server.address;
    f->config.tell = tell;
    f->config.ctx = f;
    assert_int_equal(mr_trace_log_open(&f->config, &f->log, NULL), MR_OK);
}

static void log_close(struct fixture *f)
{
    struct mr_trace_news news;
    mr_trace_log_close(&f->log);
    while (mr_inbox_take(f->news, &news, 1))
        mr_trace_news_fini(&news);
}

static int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    redis_open(&f->server, true);
    (void)snprintf(f->files, sizeof f->files, "%s/files", f->server.dir);
    f->news = mr_inbox_new(1024, sizeof(struct mr_trace_news));
    f->config = (struct mr_trace_log_config){.epoch = 1,
        .dir = f->files,
        .job_bytes_max = 1 << 20,
        .bytes_max = 4 << 20,
        .file_bytes_max = 16 << 20};
    const struct mr_redis_config link = {.address = f->server.address};
    assert_int_equal(mr_redis_open(&link, &f->reader, NULL), MR_OK);
    log_open(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    log_close(f);
    mr_redis_close(&f->reader);
    redis_close(&f->server);
    mr_inbox_free(&f->news);
    mr_release(f);
    return 0;
}

static void turn(struct fixture *f)
{
    struct mr_trace_news news;
    size_t n = mr_inbox_wait(f->news, mr_clock_now() + 20 * MR_MS, &news, 1);
    if (n) mr_trace_log_hear(f->log, mr_clock_now(), news);
    mr_trace_log_tick(f->log, mr_clock_now());
}

static void settle(struct fixture *f)
{
    mr_time until = mr_clock_now() + 20 * MR_SECOND;
    while (!mr_trace_log_is_idle(f->log) && mr_clock_now() < until)
        turn(f);
    assert_true(mr_trace_log_is_idle(f->log));
}

static void wait_away(struct fixture *f)
{
    mr_time until = mr_clock_now() + 20 * MR_SECOND;
    while (mr_redis_is_here(f->reader) && mr_clock_now() < until)
        turn(f);
    turn(f);
}

static void add(struct fixture *f, mr_job_id job, uint32_t blocks, uint32_t spans)
{
    struct mr_trace_encoder *e = mr_trace_encoder_new();
    for (uint32_t i = 0; i < blocks; i++) {
        mr_trace_encoder_begin(e, job);
        for (uint32_t k = 0; k < spans; k++) {
            const struct mr_trace_span s = {.index = f->next++,
                .attempt = 1,
                .op = MR_STR("inc"),
                .worker = MR_STR("w"),
                .started = 1000000,
                .finished = 2000000,
                .accounted = 3000000 + f->next * 5000000000u};
            assert_int_equal(mr_trace_encoder_add(e, &s), MR_OK);
        }
        mr_trace_log_add(f->log, job, mr_trace_encoder_end(e), spans);
    }
    mr_trace_encoder_free(&e);
}

struct read {
    uint64_t spans, sum;
};

static void on_span(void *ctx, const struct mr_trace_span *s)
{
    struct read *r = ctx;
    r->spans++;
    r->sum += s->index;
    assert_true(mr_str_eq(s->op, MR_STR("inc")));
}

static struct mr_trace_tally read_view(
    struct fixture *f, const char *dir, const struct mr_trace_view *v, struct read *r)
{
    const struct mr_trace_source source = {.redis = f->reader, .dir = dir};
    struct mr_trace_tally t;
    *r = (struct read){0};
    mr_trace_read(&source, v, NULL, on_span, r, &t);
    assert_true(t.spans == r->spans);
    return t;
}

static struct mr_trace_tally read_job(
    struct fixture *f, const char *dir, mr_job_id job, struct read *r)
{
    struct mr_trace_view v;
    mr_trace_log_view(f->log, job, &v);
    struct mr_trace_tally t = read_view(f, dir, &v, r);
    mr_trace_view_fini(&v);
    return t;
}

static void assert_all(struct fixture *f, mr_job_id job, uint64_t spans)
{
    struct read r;
    struct mr_trace_tally t = read_job(f, f->files, job, &r);
    assert_int_equal(t.not_recorded, 0);
    assert_int_equal(r.spans, spans);
    assert_true(r.sum == spans * (spans - 1) / 2); /* each span was read once */
}

static void what_goes_in_is_read_back_once(void **state)
{
    struct fixture *f = *state;
    struct read r;
    /* some blocks wait, some are on their way to Redis, and some are in Redis */
    add(f, JOB, 50, 100);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
        assert_all(f, JOB, 5000);
        turn(f);
    }
    settle(f);
    assert_all(f, JOB, 5000);
    const struct mr_trace_source source = {.redis = f->reader};
    struct mr_trace_view v;
    /* Reads the trace as a tool does, without a scheduler. */
    assert_int_equal(mr_trace_view_load(&source, JOB, &v), MR_OK);
    assert_int_equal(read_view(f, NULL, &v, &r).not_recorded, 0);
    assert_int_equal(r.spans, 5000);
    mr_trace_view_fini(&v);
    assert_int_equal(mr_trace_view_load(&source, OTHER, &v), MR_ENOENT);
}

static void a_job_that_is_forgotten_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    const struct mr_trace_source source = {.redis = f->reader};
    struct mr_trace_view v;
    struct mr_trace_log_totals totals;
    add(f, JOB, 10, 10);
    settle(f);
    add(f, JOB, 10, 10);
    mr_trace_log_forget(f->log, JOB);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    assert_int_equal(mr_trace_view_load(&source, JOB, &v), MR_ENOENT);
    mr_trace_log_totals(f->log, &totals);
    assert_int_equal(totals.bytes, 0);
    assert_int_equal(totals.waiting_bytes, 0);
}

static void past_a_cap_blocks_lie_in_files(void **state)
{
    struct fixture *f = *state;
    struct mr_trace_log_totals totals;
    struct read r;
    add(f, JOB, 40, 10000); /* more bytes than job_bytes_max, 1 MiB */
    settle(f);
    mr_trace_log_totals(f->log, &totals);
    assert_true(totals.bytes <= f->config.job_bytes_max);
    assert_true(totals.bytes > f->config.job_bytes_max / 2);
    assert_true(totals.file_bytes > 0);
    assert_int_equal(totals.lost, 0);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    assert_all(f, JOB, 400000);
    /* Reads the job as on another machine, where the files are missing. */
    struct mr_trace_tally t = read_job(f, NULL, JOB, &r);
    assert_true(r.spans > 0 && r.spans < 400000);
    assert_int_equal(r.spans + t.not_recorded, 400000);
    /* The next scheduler knows both jobs (`alive`); the log deletes the traces of all others. */
    const mr_job_id alive[] = {OTHER, JOB};
    log_close(f);
    f->config.jobs = alive;
    f->config.jobs_count = 2;
    f->config.epoch = 2;
    log_open(f);
    add(f, OTHER, 1, 1);
    settle(f);
    assert_all(f, JOB, 400000);
    log_close(f);
    f->config.jobs_count = 1;
    f->config.epoch = 3;
    log_open(f);
    add(f, OTHER, 1, 1);
    settle(f);
    mr_trace_log_totals(f->log, &totals);
    assert_int_equal(totals.file_bytes, 0);
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/j1-7.trace", f->files);
    assert_int_equal(access(path, F_OK), -1);
}

static void without_room_spans_are_counted(void **state)
{
    struct fixture *f = *state;
    struct read r;
    log_close(f);
    f->config.dir = NULL;
    log_open(f);
    add(f, JOB, 40, 10000);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    struct mr_trace_tally t = read_job(f, NULL, JOB, &r);
    assert_true(r.spans > 0 && t.not_recorded > 0);
    assert_int_equal(r.spans + t.not_recorded, 400000);
    mr_trace_log_lose(f->log, OTHER, 5);
    settle(f);
    const struct mr_trace_source source = {.redis = f->reader};
    struct mr_trace_view v;
    assert_int_equal(mr_trace_view_load(&source, OTHER, &v), MR_OK);
    assert_int_equal(v.spans, 5);
    mr_trace_view_fini(&v);
}

static void what_redis_misses_is_written_when_it_is_back(void **state)
{
    struct fixture *f = *state;
    add(f, JOB, 20, 100);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    add(f, JOB, 20, 100); /* a call is under way when Redis is killed */
    redis_stop(&f->server);
    wait_away(f);
    add(f, JOB, 20, 100);
    redis_start(&f->server);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    assert_all(f, JOB, 6000);
}

static void what_waits_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct mr_trace_log_totals totals;
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    redis_stop(&f->server);
    wait_away(f);
    add(f, JOB, 1000, 12000);
    mr_trace_log_totals(f->log, &totals);
    assert_true(totals.waiting_bytes <= (size_t)33 << 20);
    assert_true(totals.lost > 0 && totals.lost < totals.spans);
    redis_start(&f->server);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    struct read r;
    struct mr_trace_tally t = read_job(f, f->files, JOB, &r);
    assert_int_equal(r.spans + t.not_recorded, 12000000);
}

static void an_empty_redis_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct mr_trace_log_totals totals;
    struct read r;
    char text[160];
    add(f, JOB, 20, 100);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    redis_stop(&f->server);
    (void)snprintf(text, sizeof text, "%s/appendonlydir", f->server.dir);
    run("rm", "-rf", "--", text);
    wait_away(f);
    redis_start(&f->server);
    add(f, JOB, 20, 100);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    struct mr_trace_tally t = read_job(f, f->files, JOB, &r);
    assert_int_equal(r.spans, 2000);
    assert_int_equal(t.not_recorded, 2000);
    mr_trace_log_totals(f->log, &totals);
    assert_true(totals.bytes > 0 && totals.bytes < 40000);
}

/* Reads the entries after number `after` (0: all), and each entry's bytes again. Returns how many
 * sheets there are. */
static uint32_t entries_read(struct fixture *f, uint64_t after, uint32_t *blocks, uint64_t *last)
{
    const struct mr_trace_source source = {.redis = f->reader, .dir = f->files};
    struct mr_trace_view v;
    struct mr_trace_entry e;
    struct mr_buf bytes;
    uint32_t sheets = 0;
    *blocks = 0;
    mr_buf_init(&bytes, MR_TRACE_BLOCK_BYTES_MAX);
    mr_trace_log_view(f->log, JOB, &v);
    struct mr_trace_cursor *c = mr_trace_cursor_open(&source, &v, JOB);
    if (after) mr_trace_cursor_after(c, f->config.epoch, after);
    while (mr_trace_cursor_entry(c, &e)) {
        char text[24];
        assert_int_equal(mr_trace_entry_read(&source, &v, JOB, &e, &bytes), MR_OK);
        if (!e.is_in_file) assert_true(mr_str_eq(mr_buf_str(&bytes), e.bytes));
        assert_true(e.number > *last);
        *last = e.number;
        if (e.is_sheet) { /* the test's sheets say how many blocks there were before them */
            (void)snprintf(text, sizeof text, "sheet %u", *blocks);
            if (!after) assert_true(mr_str_eq(mr_buf_str(&bytes), mr_str(text)));
            sheets++;
        } else {
            ++*blocks;
        }
    }
    mr_trace_cursor_close(&c);
    mr_trace_view_fini(&v);
    mr_buf_fini(&bytes);
    return sheets;
}

static void sheets_follow_their_blocks(void **state)
{
    struct fixture *f = *state;
    uint32_t blocks = 0;
    uint64_t last = 0, before = 0;
    for (uint32_t i = 1; i <= 40; i++) { /* some go to Redis, and some to the file */
        char text[24];
        (void)snprintf(text, sizeof text, "sheet %u", i);
        add(f, JOB, 1, 10000);
        mr_trace_log_add_sheet(f->log, JOB, mr_str(text));
        if (i == 30) settle(f);
    }
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    for (uint32_t round = 0; round < 2; round++) {
        last = 0;
        assert_int_equal(entries_read(f, 0, &blocks, &last), 40);
        assert_int_equal(blocks, 40);
        settle(f);
    }
    assert_all(f, JOB, 400000); /* a reader of spans skips sheets */
    before = last;
    add(f, JOB, 2, 10);
    mr_trace_log_add_sheet(f->log, JOB, MR_STR("sheet 42"));
    for (uint32_t round = 0; round < 2; round++) {
        last = before;
        assert_int_equal(entries_read(f, before, &blocks, &last), 1);
        assert_int_equal(blocks, 2);
        settle(f);
    }
}

/* Until the first call of turn, the log waits for Redis, as it does while Redis hangs. */
static void views_share_the_blocks_that_wait(void **state)
{
    struct fixture *f = *state;
    const struct mr_trace_source source = {0};
    struct mr_trace_view views[16];
    struct mr_trace_tally t;
    struct read r = {0};
    add(f, JOB, 20, 100);
    for (size_t k = 0; k < MR_ARRAY_LEN(views); k++) {
        mr_trace_log_view_all(f->log, JOB, &views[k]);
        assert_int_equal(mr_trace_view_count(&views[k]), 20);
        for (uint32_t i = 0; i < 20; i++)
            assert_ptr_equal(mr_trace_view_at(&views[k], i), mr_trace_view_at(&views[0], i));
    }
    for (size_t k = 1; k < MR_ARRAY_LEN(views); k++)
        mr_trace_view_fini(&views[k]);
    settle(f); /* the log frees its entries */
    mr_trace_read(&source, &views[0], NULL, on_span, &r, &t);
    assert_int_equal(r.spans, 2000);
    mr_trace_view_fini(&views[0]);
}

static void an_older_life_writes_nothing(void **state)
{
    struct fixture *f = *state;
    struct mr_reply *reply = NULL;
    struct read r;
    add(f, JOB, 1, 10);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    const struct mr_str argv[] = {
        MR_STR("HSET"), MR_STR("millrace:cluster"), MR_STR("epoch"), MR_STR("9")};
    assert_int_equal(mr_redis_call(f->reader, MR_ARRAY_LEN(argv), argv, &reply, NULL), MR_OK);
    mr_reply_free(&reply);
    add(f, JOB, 1, 10);
    settle(f);
    struct mr_trace_tally t = read_job(f, f->files, JOB, &r);
    assert_int_equal(r.spans, 10);
    assert_int_equal(t.not_recorded, 10);
}

static void on_sample(void *ctx, const struct mr_sample *s)
{
    assert_true(mr_str_eq(s->process, MR_STR("w")));
    *(uint64_t *)ctx += s->values[MR_SAMPLE_QUEUED];
}

static void add_samples(struct fixture *f, mr_job_id segment)
{
    MR_AUTO(mr_buf_fini) struct mr_buf block;
    const struct mr_sample s = {.process = MR_STR_INIT("w"),
        .kind = MR_SAMPLE_WORKER,
        .at = 1700000000000000000u,
        .values = {[MR_SAMPLE_QUEUED] = 3}};
    mr_buf_init(&block, MR_TRACE_BLOCK_BYTES_MAX);
    mr_samples_begin(&block);
    mr_samples_add(&block, &s);
    mr_samples_end(&block, segment);
    mr_trace_log_add(f->log, segment, mr_buf_str(&block), 0);
}

/* Samples are read without a scheduler, and a segment is listed once its block is in Redis. */
static void segments_of_samples_and_events_are_listed_apart(void **state)
{
    struct fixture *f = *state;
    const struct mr_trace_source source = {.redis = f->reader};
    mr_job_id samples = mr_sample_segment_id(1700000000), ids[4];
    mr_job_id events = mr_trace_segment_id(1700000000);
    uint32_t count = 0;
    add(f, JOB, 1, 1);
    add(f, events, 1, 1);
    add_samples(f, samples);
    assert_int_equal(mr_trace_log_segments(f->log, ids, 4), 1);
    assert_true(ids[0].v == events.v);
    assert_int_equal(mr_trace_log_sample_segments(f->log, ids, 4), 1);
    assert_true(ids[0].v == samples.v);
    settle(f);
    assert_int_equal(mr_redis_wait(f->reader, 10 * MR_SECOND), MR_OK);
    assert_int_equal(mr_trace_segments_load(&source, ids, 4, &count), MR_OK);
    assert_true(count == 1 && ids[0].v == events.v);
    assert_int_equal(mr_trace_sample_segments_load(&source, ids, 4, &count), MR_OK);
    assert_true(count == 1 && ids[0].v == samples.v);
    struct mr_trace_view view;
    assert_int_equal(mr_trace_view_load(&source, samples, &view), MR_OK);
    struct mr_trace_cursor *c = mr_trace_cursor_open(&source, &view, samples);
    struct mr_str block;
    uint64_t queued = 0;
    while (mr_trace_cursor_next(c, &block))
        assert_int_equal(mr_samples_decode(block, on_sample, &queued), MR_OK);
    assert_int_equal(queued, 3);
    mr_trace_cursor_close(&c);
    mr_trace_view_fini(&view);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(what_goes_in_is_read_back_once),
        T(a_job_that_is_forgotten_leaves_nothing), T(past_a_cap_blocks_lie_in_files),
        T(without_room_spans_are_counted), T(what_redis_misses_is_written_when_it_is_back),
        T(what_waits_is_bounded), T(an_empty_redis_is_noticed), T(sheets_follow_their_blocks),
        T(views_share_the_blocks_that_wait), T(an_older_life_writes_nothing),
        T(segments_of_samples_and_events_are_listed_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
