/* services/scheduler/history/job_account: the account of a job and of the whole cluster, read from
 * blocks. All blocks are in a mr_trace_view, so the tests need no Redis. */
#include "services/scheduler/history/job_account.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "store/meta/trace/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define BEGIN UINT64_C(1700000000000000000)
#define SEGMENT 1699999999u
#define JOBS 6u
#define SPANS 40000u
#define BLOCK_SPANS 1500u
#define WORKERS 3u
#define SLOTS 4u
#define LANES (WORKERS * SLOTS)

struct job {
    struct mr_trace_encoder *encoder;
    uint64_t submitted, over;
    uint32_t made;
};

struct maker {
    struct mr_rng rng;
    struct job jobs[JOBS];
    uint64_t free[LANES], accounted;
    struct mr_trace_view view;
    uint64_t numbers;
};

struct pieces {
    uint64_t count, hash;
};

struct answer {
    struct mr_job_account account;
    struct pieces pieces;
};

static mr_job_id id_of(uint32_t job)
{
    return mr_job_id_make(0x1000000, job + 1);
}

static void block_add(struct maker *m, mr_job_id id, struct mr_str bytes)
{
    struct mr_trace_waiting *w = mr_trace_waiting_new(id, ++m->numbers, false, bytes);
    mr_trace_view_add(&m->view, w);
    mr_trace_waiting_put(&w);
}

/* Adds a random span of a job. Each operation has a random delay. The scheduler accounts the spans
 * in the order in which they are made. */
static void span_add(struct maker *m, uint32_t job)
{
    struct job *j = &m->jobs[job];
    struct mr_rng *r = &m->rng;
    uint32_t lane = 0, index = j->made++;
    char worker[8], op[8];
    for (uint32_t i = 1; i < LANES; i++)
        if (m->free[i] < m->free[lane]) lane = i;
    struct mr_trace_span s = {.index = index,
        .last_input = index && mr_rng_below(r, 3)
                          ? index - 1 - (uint32_t)mr_rng_below(r, MR_MIN(index, 9u))
                          : index,
        .attempt = 1,
        .slot = lane % SLOTS,
        .worker_id = lane / SLOTS,
        .op_id = (uint32_t)mr_rng_below(r, 4) * (job + 1)};
    s.ready = MR_MAX(j->submitted, m->free[lane]) - mr_rng_below(r, 20000);
    s.sent = s.ready + mr_rng_below(r, 5000);
    s.received = s.sent + mr_rng_below(r, 5000);
    s.started = MR_MAX(MR_MAX(m->free[lane], s.received), j->submitted) + mr_rng_below(r, 3000);
    s.finished = s.started + mr_rng_below(r, 30000);
    s.accounted = m->accounted = MR_MAX(m->accounted, s.finished + mr_rng_below(r, 4000));
    s.cpu_ns = mr_rng_below(r, 30000);
    if (!mr_rng_below(r, 4)) s.inputs = s.received + mr_rng_below(r, 2000);
    if (!mr_rng_below(r, 4)) s.input_ns = mr_rng_below(r, 4000);
    if (!mr_rng_below(r, 4)) s.output_ns = mr_rng_below(r, 4000);
    if (!mr_rng_below(r, 8)) s.late_ns = mr_rng_below(r, 9000);
    if (!mr_rng_below(r, 8)) s.delayed_ns = mr_rng_below(r, 9000);
    if (!mr_rng_below(r, 9)) s.held = MR_TRACE_HELD_MEMORY;
    (void)snprintf(worker, sizeof worker, "w%u", s.worker_id);
    (void)snprintf(op, sizeof op, "op%u", s.op_id);
    s.worker = mr_str(worker);
    s.op = mr_str(op);
    m->free[lane] = s.finished;
    j->over = s.accounted;
    assert_int_equal(mr_trace_encoder_add(j->encoder, &s), 0);
    if (mr_trace_encoder_count(j->encoder) < BLOCK_SPANS) return;
    block_add(m, id_of(job), mr_trace_encoder_end(j->encoder));
    mr_trace_encoder_begin(j->encoder, id_of(job));
}

/* Adds the events. The third worker has none: its slots are known from spans. */
static void events_add(struct maker *m)
{
    struct mr_buf b;
    mr_buf_init(&b, MR_TRACE_BLOCK_BYTES_MAX);
    mr_trace_events_begin(&b, mr_trace_segment_id(SEGMENT));
    const struct mr_trace_event began = {.kind = MR_TRACE_EVENT_BEGAN, .at = BEGIN - 1000};
    mr_trace_events_add(&b, &began);
    for (uint32_t i = 0; i + 1 < WORKERS; i++) {
        const struct mr_trace_event e = {.kind = MR_TRACE_EVENT_JOINED,
            .at = BEGIN - 500,
            .since = BEGIN - 900,
            .incarnation = i + 1,
            .slots = SLOTS,
            .name = i ? MR_STR("w1") : MR_STR("w0")};
        mr_trace_events_add(&b, &e);
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        const struct mr_trace_event accepted = {.kind = MR_TRACE_EVENT_ACCEPTED,
            .at = m->jobs[i].submitted + 4000,
            .since = m->jobs[i].submitted,
            .job = id_of(i),
            .name = MR_STR("client")};
        const struct mr_trace_event over = {.kind = MR_TRACE_EVENT_OVER,
            .at = m->jobs[i].over + 9000,
            .since = m->jobs[i].over + 2000,
            .job = id_of(i)};
        mr_trace_events_add(&b, &accepted);
        mr_trace_events_add(&b, &over);
    }
    block_add(m, mr_trace_segment_id(SEGMENT), mr_buf_str(&b));
    mr_buf_fini(&b);
}

/* Makes the traces of jobs that run beside each other. */
static void make(struct maker *m, uint64_t seed)
{
    *m = (struct maker){.accounted = BEGIN};
    mr_rng_init(&m->rng, seed);
    mr_trace_view_init(&m->view, id_of(1));
    for (uint32_t i = 0; i < LANES; i++)
        m->free[i] = BEGIN;
    for (uint32_t i = 0; i < JOBS; i++) {
        m->jobs[i].submitted = BEGIN + i * 5000000u;
        m->jobs[i].encoder = mr_trace_encoder_new();
        mr_trace_encoder_begin(m->jobs[i].encoder, id_of(i));
    }
    for (uint32_t i = 0; i < SPANS; i++) {
        uint32_t job = (uint32_t)mr_rng_below(&m->rng, JOBS);
        while (job && m->jobs[job].submitted > m->accounted)
            job--;
        span_add(m, job);
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        if (mr_trace_encoder_count(m->jobs[i].encoder))
            block_add(m, id_of(i), mr_trace_encoder_end(m->jobs[i].encoder));
        mr_trace_encoder_free(&m->jobs[i].encoder);
    }
    m->view.spans = m->jobs[1].made;
    events_add(m);
}

static void mix(struct pieces *p, uint64_t v)
{
    p->hash = (p->hash ^ v) * UINT64_C(0x100000001b3);
}

static void on_piece(
    void *ctx, struct mr_str worker, uint32_t slot, const struct mr_account_piece *piece)
{
    struct pieces *p = ctx;
    p->count++;
    mix(p, (uint64_t)worker.p[1] << 32 | slot);
    mix(p, piece->class);
    mix(p, piece->from);
    mix(p, piece->to);
    mix(p, (uint64_t)piece->job << 32 | piece->index);
}

static struct answer answer(const struct maker *m, struct mr_job_account_ask ask)
{
    const mr_job_id segments[] = {mr_trace_segment_id(SEGMENT)};
    const struct mr_trace_source source = {0};
    struct answer a = {0};
    ask.segments = segments;
    ask.segments_count = 1;
    ask.steps_max = 1000;
    ask.on_piece = on_piece;
    ask.ctx = &a.pieces;
    assert_int_equal(mr_job_account_read(&source, &m->view, &ask, &a.account), 0);
    return a;
}

static void assert_same_ops(const struct mr_job_account *a, const struct mr_job_account *b)
{
    assert_int_equal(a->ops_count, b->ops_count);
    for (uint32_t i = 0; i < a->ops_count; i++) {
        const struct mr_job_account_op *x = &a->ops[i], *y = &b->ops[i];
        assert_true(mr_str_eq(x->name, y->name));
        assert_int_equal(x->attempts, y->attempts);
        assert_int_equal(x->wall_ns, y->wall_ns);
        assert_int_equal(x->cpu_ns, y->cpu_ns);
        assert_int_equal(x->queue_ns, y->queue_ns);
        assert_int_equal(x->median_ns, y->median_ns);
        assert_int_equal(x->p99_ns, y->p99_ns);
        assert_int_equal(x->white_ns, y->white_ns);
    }
}

static void assert_same(const struct answer *x, const struct answer *y)
{
    const struct mr_job_account *a = &x->account, *b = &y->account;
    assert_int_equal(x->pieces.count, y->pieces.count);
    assert_true(x->pieces.hash == y->pieces.hash);
    assert_int_equal(a->from_ns, b->from_ns);
    assert_int_equal(a->until_ns, b->until_ns);
    assert_memory_equal(&a->sums, &b->sums, sizeof a->sums);
    assert_memory_equal(&a->path, &b->path, sizeof a->path);
    assert_int_equal(a->slot_ns, b->slot_ns);
    assert_int_equal(a->other_ns, b->other_ns);
    assert_int_equal(a->not_recorded, b->not_recorded);
    assert_int_equal(a->steps_count, b->steps_count);
    for (uint32_t i = 0; i < a->steps_count; i++) {
        assert_int_equal(a->steps[i].from_ns, b->steps[i].from_ns);
        assert_int_equal(a->steps[i].to_ns, b->steps[i].to_ns);
        assert_int_equal(a->steps[i].class, b->steps[i].class);
        assert_int_equal(a->steps[i].index, b->steps[i].index);
        assert_int_equal(a->steps[i].op, b->steps[i].op);
    }
    assert_same_ops(a, b);
}

/* Asks twice, and compares the answers. The first time, the spans are read by one thread, and the
 * second time by two. Returns the first answer. */
static struct answer answer_both(const struct maker *m, struct mr_job_account_ask ask)
{
    ask.spans_alone = UINT64_MAX;
    struct answer alone = answer(m, ask);
    ask.spans_alone = 1;
    struct answer ahead = answer(m, ask);
    assert_same(&alone, &ahead);
    mr_job_account_fini(&ahead.account);
    return alone;
}

static void two_threads_give_the_answer_of_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct maker m;
        make(&m, seed);
        m.view.spans += 7; /* seven spans were dropped */
        struct answer job = answer_both(&m, (struct mr_job_account_ask){.job = id_of(1)});
        uint64_t attempts = 0;
        for (uint32_t i = 0; i < job.account.ops_count; i++)
            attempts += job.account.ops[i].attempts;
        assert_int_equal(attempts, m.jobs[1].made);
        assert_int_equal(job.account.not_recorded, 7);
        assert_int_equal(job.account.from_ns, m.jobs[1].submitted);
        assert_int_equal(job.account.until_ns, m.jobs[1].over + 9000);
        assert_int_equal(job.account.slot_ns, LANES * (job.account.until_ns - job.account.from_ns));
        assert_true(job.account.steps_count > 10);
        mr_job_account_fini(&job.account);
        mr_trace_view_fini(&m.view);
    }
}

static void a_window_of_the_cluster_has_all_jobs(void **state)
{
    (void)state;
    struct maker m;
    make(&m, 4);
    uint64_t from = m.jobs[2].submitted, until = from + 20000000;
    struct answer all = answer_both(
        &m, (struct mr_job_account_ask){.from_ns = from, .until_ns = until, .now_ns = until});
    assert_int_equal(all.account.slot_ns, LANES * (until - from));
    assert_int_equal(all.account.other_ns, 0);
    assert_true(mr_job_account_busy(&all.account) > all.account.slot_ns / 4);
    mr_job_account_fini(&all.account);
    mr_trace_view_fini(&m.view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_threads_give_the_answer_of_one),
        cmocka_unit_test(a_window_of_the_cluster_has_all_jobs),
    };
    return cmocka_run_group_tests_name("scheduler_job_account", tests, NULL, NULL);
}
