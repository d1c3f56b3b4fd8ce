/* store/meta/trace/codec: spans are restored from a block, also if their times go backwards.
 * Malformed blocks are refused. */
#include "base/alloc.h"
#include "base/rng.h"
#include "store/meta/trace/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SPANS_MAX 20000

struct decoded {
    struct mr_trace_span spans[SPANS_MAX];
    char names[SPANS_MAX][2][40];
    uint32_t count;
};

static struct decoded *decoded;
static struct mr_trace_encoder *encoder;

static void on_span(void *ctx, const struct mr_trace_span *s)
{
    (void)ctx;
    assert_true(decoded->count < SPANS_MAX);
    uint32_t i = decoded->count++;
    decoded->spans[i] = *s;
    (void)snprintf(decoded->names[i][0], 40, "%.*s", MR_STR_ARG(s->op));
    (void)snprintf(decoded->names[i][1], 40, "%.*s", MR_STR_ARG(s->worker));
}

static int setup(void **state)
{
    (void)state;
    decoded = mr_alloc(sizeof *decoded);
    encoder = mr_trace_encoder_new();
    mr_trace_encoder_begin(encoder, (mr_job_id){7});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mr_release(decoded);
    mr_trace_encoder_free(&encoder);
    return 0;
}

static uint64_t tick(uint64_t ns)
{
    return ns / MR_TRACE_TICK_NS * MR_TRACE_TICK_NS;
}

static void assert_same(const struct mr_trace_span *a, const struct mr_trace_span *b)
{
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->slot, b->slot);
    assert_int_equal(a->outcome, b->outcome);
    assert_true(tick(a->ready) == b->ready);
    assert_true(tick(a->sent) == b->sent);
    assert_true(tick(a->started) == b->started);
    assert_true(tick(a->finished) == b->finished);
    assert_true(tick(a->accounted) == b->accounted);
    assert_true(tick(a->cpu_ns) == b->cpu_ns);
    assert_true(a->bytes == b->bytes);
    assert_true(tick(a->received) == b->received);
    assert_true(tick(a->inputs) == b->inputs);
    assert_true(tick(a->input_ns) == b->input_ns);
    assert_true(tick(a->output_ns) == b->output_ns);
    assert_true(tick(a->late_ns) == b->late_ns);
    assert_true(tick(a->delayed_ns) == b->delayed_ns);
    assert_true(tick(a->room_ns) == b->room_ns);
    assert_true(tick(a->restore_ns) == b->restore_ns);
    assert_true(a->training == b->training);
    assert_int_equal(a->held, b->held);
    assert_int_equal(a->last_input, b->last_input);
}

static void round_trip(const struct mr_trace_span *spans, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(mr_trace_encoder_add(encoder, &spans[i]), MR_OK);
    assert_int_equal(mr_trace_encoder_count(encoder), count);
    assert_int_equal(mr_trace_decode(mr_trace_encoder_end(encoder), on_span, NULL), MR_OK);
    assert_int_equal(decoded->count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_same(&spans[i], &decoded->spans[i]);
}

static struct mr_trace_span span_at(uint32_t index, uint64_t ns)
{
    return (struct mr_trace_span){.index = index,
        .last_input = index,
        .attempt = 1,
        .op = MR_STR("inc"),
        .worker = MR_STR("worker-0-0"),
        .op_id = 1,
        .worker_id = 1,
        .ready = ns,
        .sent = ns + 1000,
        .started = ns + 50000,
        .finished = ns + 51000,
        .accounted = ns + 90000,
        .cpu_ns = 900};
}

static void one_span_comes_back(void **state)
{
    (void)state;
    const struct mr_trace_span s = span_at(3, 1700000000000000000u);
    struct mr_trace_block head;
    round_trip(&s, 1);
    assert_string_equal(decoded->names[0][0], "inc");
    assert_string_equal(decoded->names[0][1], "worker-0-0");
    assert_int_equal(mr_trace_block_read(mr_trace_encoder_end(encoder), &head), MR_OK);
    assert_true(head.job.v == 7);
    assert_int_equal(head.count, 1);
    assert_int_equal(head.index_min, 3);
    assert_int_equal(head.index_max, 3);
    assert_true(head.finished_max == s.finished);
}

/* The times of workers are converted to the scheduler's clock by an estimate. So a later time of a
 * span may be smaller than an earlier one. */
static void clocks_that_go_backwards_come_back(void **state)
{
    (void)state;
    struct mr_trace_span spans[200];
    for (uint32_t i = 0; i < 200; i++) {
        spans[i] = span_at(i, 1700000000000000000u - i * 1000000u);
        spans[i].worker_id = i % 3;
        spans[i].slot = i % 2;
        spans[i].started = spans[i].sent - 700000;                  /* earlier than `sent` */
        if (i % 5 == 0) spans[i].finished = spans[i].started - 300; /* earlier than `started` */
        if (i % 7 == 0) spans[i].accounted = 100;
    }
    round_trip(spans, 200);
}

static void times_of_all_64_bits_come_back(void **state)
{
    (void)state;
    static const uint64_t edges[] = {100, ((uint64_t)1 << 63) - 1, (uint64_t)1 << 63,
        ((uint64_t)1 << 63) + 100, UINT64_MAX, UINT64_MAX - 100, 1700000000000000000u, 0};
    struct mr_trace_span spans[512];
    struct mr_rng r;
    mr_rng_init(&r, 5);
    for (uint32_t i = 0; i < 512; i++) {
        spans[i] = span_at((uint32_t)mr_rng_next(&r), 0);
        uint64_t *times[] = {&spans[i].ready, &spans[i].sent, &spans[i].started, &spans[i].finished,
            &spans[i].accounted, &spans[i].cpu_ns, &spans[i].received, &spans[i].inputs,
            &spans[i].input_ns, &spans[i].output_ns, &spans[i].late_ns, &spans[i].delayed_ns,
            &spans[i].room_ns, &spans[i].training, &spans[i].restore_ns};
        for (size_t k = 0; k < MR_ARRAY_LEN(times); k++)
            *times[k] = edges[mr_rng_below(&r, MR_ARRAY_LEN(edges))];
        spans[i].attempt = i % 4 ? 1 : UINT32_MAX;
        spans[i].outcome = i % 9 ? 0 : UINT32_MAX;
        spans[i].slot = i % 3 ? 0 : UINT32_MAX;
        spans[i].held = i % 5 ? 0 : UINT32_MAX;
        if (i % 11 == 0) spans[i].index = i % 2 ? 0 : UINT32_MAX;
        spans[i].last_input = i % 3 ? spans[i].index : (uint32_t)mr_rng_next(&r);
        if (i % 7 == 0) spans[i].last_input = i % 2 ? 0 : UINT32_MAX;
    }
    round_trip(spans, 512);
}

static void what_was_not_reached_is_not_there(void **state)
{
    (void)state;
    struct mr_trace_span s[3] = {span_at(1, 5000000), span_at(2, 5000000), span_at(3, 6000000)};
    s[1].ready = s[1].sent = s[1].started = s[1].finished = s[1].cpu_ns = 0;
    s[1].outcome = 4;
    round_trip(s, 3);
}

/* The encoder writes the distance from a span's index to its last_input only if it differs from the
 * previous span's. In a chain, and for tasks without inputs, it never differs. */
static void last_inputs_come_back(void **state)
{
    (void)state;
    static const uint32_t last[] = {0, 0, 1, 2, 3, 5, 6, 3, 900, UINT32_MAX, 10};
    struct mr_trace_span s[MR_ARRAY_LEN(last)];
    for (uint32_t i = 0; i < MR_ARRAY_LEN(last); i++) {
        s[i] = span_at(i, 5000000);
        s[i].last_input = last[i];
    }
    round_trip(s, MR_ARRAY_LEN(last));
    size_t bytes[2];
    for (uint32_t is_chain = 0; is_chain < 2; is_chain++) {
        mr_trace_encoder_begin(encoder, (mr_job_id){8});
        for (uint32_t i = 1; i < 1001; i++) {
            struct mr_trace_span x = span_at(i, 5000000);
            x.last_input = i - is_chain;
            assert_int_equal(mr_trace_encoder_add(encoder, &x), MR_OK);
        }
        bytes[is_chain] = mr_trace_encoder_bytes(encoder);
    }
    assert_true(bytes[1] <= bytes[0] + 3);
}

static void sizes_of_values_come_back(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 9, 9, 9, UINT64_MAX, 0, 127, 128};
    struct mr_trace_span s[8];
    for (uint32_t i = 0; i < 8; i++) {
        s[i] = span_at(i, 5000000 + i * 100000);
        s[i].bytes = sizes[i];
        s[i].attempt = i == 3 ? 2 : 1;
        s[i].slot = i % 2;
    }
    round_trip(s, 8);
}

static void a_block_of_version_0_1_is_read(void **state)
{
    (void)state;
    struct mr_trace_span s = span_at(9, 7000000);
    s.attempt = 2;
    s.outcome = 3;
    assert_int_equal(mr_trace_encoder_add(encoder, &s), MR_OK);
    struct mr_str now = mr_trace_encoder_end(encoder);
    char old[256];
    assert_true(now.n < sizeof old);
    memcpy(old, now.p, now.n);
    /* In format "mtr1", attempt and outcome come first and the mask of times after them. */
    old[3] = '1';
    char *more = memmem(old, now.n, "\x5f\x02\x03", 3);
    assert_non_null(more);
    memcpy(more, "\x02\x03\x1f", 3);
    assert_int_equal(mr_trace_decode(mr_str_of(old, now.n), on_span, NULL), MR_OK);
    assert_int_equal(decoded->count, 1);
    assert_same(&s, &decoded->spans[0]);
}

static void an_encoder_begins_anew(void **state)
{
    (void)state;
    const struct mr_trace_span s = span_at(9, 7000000);
    round_trip(&s, 1);
    mr_trace_encoder_begin(encoder, (mr_job_id){8});
    decoded->count = 0;
    round_trip(&s, 1);
    assert_string_equal(decoded->names[0][0], "inc");
}

/* Two decoders take turns, and the first of them then reads the other block. */
static void two_blocks_are_read_in_turns(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    struct mr_trace_encoder *other = mr_trace_encoder_new();
    struct mr_trace_decoder *a = mr_trace_decoder_new(), *b = mr_trace_decoder_new();
    struct mr_trace_span s, first[COUNT], second[COUNT];
    mr_trace_encoder_begin(other, (mr_job_id){8});
    for (uint32_t i = 0; i < COUNT; i++) {
        first[i] = span_at(i, 1700000000000000000u + i * 1000u);
        second[i] = span_at(7 * i, 1800000000000000000u - i * 1000000u);
        second[i].worker_id = second[i].op_id = i % 5;
        assert_int_equal(mr_trace_encoder_add(encoder, &first[i]), MR_OK);
        assert_int_equal(mr_trace_encoder_add(other, &second[i]), MR_OK);
    }
    struct mr_str block = mr_trace_encoder_end(other);
    assert_false(mr_trace_decoder_next(a, &s));
    assert_int_equal(mr_trace_decoder_begin(a, mr_trace_encoder_end(encoder)), MR_OK);
    assert_int_equal(mr_trace_decoder_begin(b, block), MR_OK);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(mr_trace_decoder_next(a, &s));
        assert_same(&first[i], &s);
        assert_true(mr_trace_decoder_next(b, &s));
        assert_same(&second[i], &s);
        assert_int_equal(s.worker_id, i % 5);
    }
    assert_false(mr_trace_decoder_next(a, &s));
    assert_int_equal(mr_trace_decoder_begin(a, block), MR_OK);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_true(mr_trace_decoder_next(a, &s));
    assert_same(&second[COUNT - 1], &s);
    assert_int_equal(mr_trace_decoder_begin(a, mr_str_of(block.p, 20)), MR_EFORMAT);
    assert_false(mr_trace_decoder_next(a, &s));
    mr_trace_decoder_free(&a);
    mr_trace_decoder_free(&b);
    mr_trace_encoder_free(&other);
}

static void a_block_takes_only_so_many_names(void **state)
{
    (void)state;
    struct mr_trace_span s = span_at(0, 7000000);
    int err = MR_OK;
    uint32_t n = 0;
    for (; !err && n < 100000; n++) {
        s.worker_id = s.index = s.last_input = n;
        err = mr_trace_encoder_add(encoder, &s);
    }
    assert_int_equal(err, MR_ELIMIT);
    assert_int_equal(n, 4097);
    assert_int_equal(mr_trace_decode(mr_trace_encoder_end(encoder), on_span, NULL), MR_OK);
    assert_int_equal(decoded->count, 4096);
}

/* The spans are like those of `millrace bench`: four workers get sixteen tasks in each message, and
 * a task runs for 0.2 to 0.6 microseconds. */
static void small_tasks_cost_few_bytes(void **state)
{
    (void)state;
    struct mr_trace_span s = span_at(0, 1700000000000000000u);
    uint64_t clock[4] = {0};
    struct mr_rng r;
    mr_rng_init(&r, 1);
    for (uint32_t i = 0; i < 4; i++)
        clock[i] = s.ready + 100000 + i * 777;
    for (uint32_t i = 0; i < 16000; i++) {
        uint32_t worker = i / 16 % 4;
        s.index = s.last_input = i;
        s.worker_id = worker;
        s.started = clock[worker] + 60 + mr_rng_below(&r, 200);
        s.finished = s.started + 200 + mr_rng_below(&r, 400);
        s.cpu_ns = s.finished - s.started;
        clock[worker] = s.finished;
        if (i % 16 == 0) {
            s.sent = s.started - 40000 - mr_rng_below(&r, 50000);
            s.received = s.sent + 8000 + mr_rng_below(&r, 20000);
            s.accounted = s.finished + 60000 + mr_rng_below(&r, 50000);
        }
        assert_int_equal(mr_trace_encoder_add(encoder, &s), MR_OK);
    }
    double bytes = (double)mr_trace_encoder_bytes(encoder) / 16000;
    print_message("%.2f bytes a small task\n", bytes);
    assert_true(bytes < 8);
}

/* Sixteen slots run tasks of 1 to 100 ms. The gaps between the times of a task are random, each
 * task came in a message of its own, and its inputs and its result took time. */
static void large_tasks_cost_thirty_bytes_at_most(void **state)
{
    (void)state;
    struct mr_rng r;
    uint64_t clock[16];
    uint64_t accounted[16];
    mr_rng_init(&r, 2);
    for (uint32_t i = 0; i < 16; i++)
        clock[i] = accounted[i] = 1700000000000000000u;
    for (uint32_t i = 0; i < 8000; i++) {
        uint32_t lane = (uint32_t)mr_rng_below(&r, 16);
        struct mr_trace_span s = span_at(i, 0);
        s.worker_id = lane / 4;
        s.slot = lane % 4;
        s.sent = accounted[lane] + 2000 + mr_rng_below(&r, 20000);
        s.ready = s.sent - mr_rng_below(&r, 4000000);
        s.received = s.sent + 8000 + mr_rng_below(&r, 20000);
        s.input_ns = mr_rng_below(&r, 200000);
        s.output_ns = mr_rng_below(&r, 200000);
        s.late_ns = mr_rng_below(&r, 200000);
        s.started = MR_MAX(clock[lane], s.sent) + 20000 + mr_rng_below(&r, 200000);
        s.finished = s.started + 1000000 + mr_rng_below(&r, 99000000);
        s.cpu_ns = s.finished - s.started - mr_rng_below(&r, 100000);
        s.accounted = s.finished + 50000 + mr_rng_below(&r, 500000);
        clock[lane] = s.finished;
        accounted[lane] = s.accounted;
        assert_int_equal(mr_trace_encoder_add(encoder, &s), MR_OK);
    }
    double bytes = (double)mr_trace_encoder_bytes(encoder) / 8000;
    print_message("%.2f bytes a large task\n", bytes);
    assert_true(bytes <= 30);
}

static void every_cut_and_most_changes_are_refused_or_harmless(void **state)
{
    (void)state;
    struct mr_trace_span s;
    for (uint32_t i = 0; i < 20; i++) {
        s = span_at(i * 3, 1000000 + i * 5000);
        s.worker_id = i % 3;
        assert_int_equal(mr_trace_encoder_add(encoder, &s), MR_OK);
    }
    struct mr_str block = mr_trace_encoder_end(encoder);
    for (size_t n = 0; n < block.n; n++) {
        decoded->count = 0;
        /* The copy has exactly n bytes, so that the sanitizer notices a read beyond them. */
        unsigned char *cut = mr_copy(block.p, n ? n : 1);
        assert_int_equal(mr_trace_decode(mr_str_of(cut, n), on_span, NULL), MR_EFORMAT);
        mr_release(cut);
    }
    for (size_t at = 0; at < block.n; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            unsigned char *bent = mr_copy(block.p, block.n);
            bent[at] ^= (unsigned char)(1u << bit);
            decoded->count = 0;
            (void)mr_trace_decode(mr_str_of(bent, block.n), on_span, NULL);
            mr_release(bent);
        }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(one_span_comes_back),
        T(clocks_that_go_backwards_come_back), T(times_of_all_64_bits_come_back),
        T(what_was_not_reached_is_not_there), T(last_inputs_come_back),
        T(sizes_of_values_come_back), T(a_block_of_version_0_1_is_read), T(an_encoder_begins_anew),
        T(two_blocks_are_read_in_turns), T(a_block_takes_only_so_many_names),
        T(small_tasks_cost_few_bytes), T(large_tasks_cost_thirty_bytes_at_most),
        T(every_cut_and_most_changes_are_refused_or_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
