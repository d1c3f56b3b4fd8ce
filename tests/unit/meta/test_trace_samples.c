/* store/meta/trace/samples: samples are restored from a block, malformed blocks are refused, and
 * segments of samples and of events are told apart. */
#include "base/defs.h"
#include "store/meta/trace/codec.h"
#include "store/meta/trace/events.h"
#include "store/meta/trace/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct {
    struct mr_sample samples[8];
    char names[8][16];
    uint32_t count;
} decoded;
static struct mr_buf block;

static const struct mr_sample all[] = {
    {.process = MR_STR_INIT("worker-0"),
        .node = MR_STR_INIT("node-0"),
        .kind = MR_SAMPLE_WORKER,
        .at = 1700000000001000000u,
        .values = {[MR_SAMPLE_MEMORY_BYTES] = (uint64_t)5 << 30,
            [MR_SAMPLE_CPU_MILLI] = 999,
            [MR_SAMPLE_RECEIVED] = 1,
            [MR_SAMPLE_SENT] = UINT64_MAX,
            [MR_SAMPLE_SPILLED_BYTES] = 1024,
            [MR_SAMPLE_WRITTEN] = 17,
            [MR_SAMPLE_QUEUED] = 3}},
    {.process = MR_STR_INIT("scheduler"), .kind = MR_SAMPLE_SCHEDULER, .at = 2000000},
};

static int setup(void **state)
{
    (void)state;
    memset(&decoded, 0, sizeof decoded);
    mr_buf_init(&block, MR_TRACE_BLOCK_BYTES_MAX);
    mr_samples_begin(&block);
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++)
        mr_samples_add(&block, &all[i]);
    mr_samples_end(&block, mr_sample_segment_id(1700000000));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mr_buf_fini(&block);
    return 0;
}

static void on_sample(void *ctx, const struct mr_sample *s)
{
    (void)ctx;
    if (decoded.count == MR_ARRAY_LEN(decoded.samples)) return;
    decoded.samples[decoded.count] = *s;
    (void)snprintf(
        decoded.names[decoded.count++], sizeof decoded.names[0], "%.*s", MR_STR_ARG(s->process));
}

static void samples_come_back(void **state)
{
    (void)state;
    struct mr_trace_block head;
    assert_int_equal(mr_samples_decode(mr_buf_str(&block), on_sample, NULL), MR_OK);
    assert_int_equal(decoded.count, MR_ARRAY_LEN(all));
    for (uint32_t i = 0; i < decoded.count; i++) {
        const struct mr_sample *s = &decoded.samples[i];
        assert_true(mr_str_eq(mr_str(decoded.names[i]), all[i].process));
        assert_int_equal(s->kind, all[i].kind);
        assert_true(s->at == all[i].at);
        assert_memory_equal(s->values, all[i].values, sizeof s->values);
    }
    assert_int_equal(mr_trace_block_read(mr_buf_str(&block), &head), MR_OK);
    assert_true(mr_sample_is_segment(head.job));
    assert_int_equal(head.count, 0); /* a reader of spans finds none */
}

static void an_idle_process_takes_few_bytes(void **state)
{
    (void)state;
    size_t before = block.n;
    const struct mr_sample idle = {.process = MR_STR_INIT("worker-0-0"),
        .node = MR_STR_INIT("node-0"),
        .kind = MR_SAMPLE_WORKER,
        .at = 1700000000001000000u,
        .values = {[MR_SAMPLE_MEMORY_BYTES] = 100 << 20}};
    mr_samples_add(&block, &idle);
    assert_true(block.n - before <= 48);
}

static void damage_is_refused(void **state)
{
    (void)state;
    struct mr_str b = mr_buf_str(&block);
    for (size_t n = 0; n < b.n; n++)
        assert_int_equal(mr_samples_decode(mr_str_of(b.p, n), on_sample, NULL), MR_EFORMAT);
    block.p[56] ^= 7; /* the first byte after the head is a tag */
    assert_int_not_equal(mr_samples_decode(b, on_sample, NULL), MR_OK);
}

static void blocks_of_other_kinds_have_no_samples(void **state)
{
    (void)state;
    const struct mr_trace_event e = {.kind = MR_TRACE_EVENT_BEGAN, .at = 5};
    mr_trace_events_begin(&block, mr_trace_segment_id(1700000000));
    mr_trace_events_add(&block, &e);
    assert_int_equal(mr_samples_decode(mr_buf_str(&block), on_sample, NULL), MR_OK);
    assert_int_equal(decoded.count, 0);
}

static void segments_of_samples_and_events_differ(void **state)
{
    (void)state;
    static const uint64_t seconds[] = {1000000000, 1700000000, UINT32_MAX};
    for (size_t i = 0; i < MR_ARRAY_LEN(seconds); i++) {
        mr_job_id events = mr_trace_segment_id((uint32_t)seconds[i]);
        mr_job_id samples = mr_sample_segment_id(seconds[i]);
        assert_true(mr_trace_is_segment(events) && mr_trace_is_segment(samples));
        assert_false(mr_sample_is_segment(events));
        assert_true(mr_sample_is_segment(samples));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(samples_come_back),
        TEST(an_idle_process_takes_few_bytes),
        TEST(damage_is_refused),
        TEST(blocks_of_other_kinds_have_no_samples),
        TEST(segments_of_samples_and_events_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
