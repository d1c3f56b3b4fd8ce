/* store/meta/trace/events: events are restored from a block, and malformed blocks are refused. */
#include "base/alloc.h"
#include "base/defs.h"
#include "base/limits.h"
#include "store/meta/trace/codec.h"
#include "store/meta/trace/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct {
    struct mr_trace_event events[16];
    char names[16][16], spaces[16][16];
    uint32_t count;
} decoded;
static struct mr_buf block;

static int setup(void **state)
{
    (void)state;
    memset(&decoded, 0, sizeof decoded);
    mr_buf_init(&block, MR_TRACE_BLOCK_BYTES_MAX);
    mr_trace_events_begin(&block, mr_trace_segment_id(1700000000));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mr_buf_fini(&block);
    return 0;
}

static void on_event(void *ctx, const struct mr_trace_event *e)
{
    (void)ctx;
    if (decoded.count == MR_ARRAY_LEN(decoded.events)) return;
    uint32_t i = decoded.count++;
    decoded.events[i] = *e;
    (void)snprintf(decoded.names[i], sizeof decoded.names[i], "%.*s", MR_STR_ARG(e->name));
    (void)snprintf(decoded.spaces[i], sizeof decoded.spaces[i], "%.*s", MR_STR_ARG(e->name_space));
}

static const struct mr_trace_event all[] = {{.kind = MR_TRACE_EVENT_BEGAN, .at = 5},
    {.kind = MR_TRACE_EVENT_JOINED,
        .at = 1700000000000000001u,
        .since = 1700000000000000000u,
        .incarnation = UINT64_MAX,
        .slots = MR_SLOTS_MAX,
        .processors = 48,
        .name = MR_STR_INIT("worker-0")},
    {.kind = MR_TRACE_EVENT_ACCEPTED, .at = 9, .since = 8, .job = {77}, .name = MR_STR_INIT("ann")},
    {.kind = MR_TRACE_EVENT_ACCEPTED,
        .at = 9,
        .since = 8,
        .job = {78},
        .name = MR_STR_INIT("ann"),
        .name_space = MR_STR_INIT("beamline")},
    {.kind = MR_TRACE_EVENT_OVER, .at = 10, .job = {77}},
    {.kind = MR_TRACE_EVENT_GONE, .at = 11, .incarnation = 1, .name = MR_STR_INIT("worker-0")}};

static void events_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++)
        mr_trace_events_add(&block, &all[i]);
    assert_int_equal(mr_trace_events_decode(mr_buf_str(&block), on_event, NULL), MR_OK);
    assert_int_equal(decoded.count, MR_ARRAY_LEN(all));
    for (uint32_t i = 0; i < decoded.count; i++) {
        const struct mr_trace_event *a = &all[i], *b = &decoded.events[i];
        assert_int_equal(a->kind, b->kind);
        assert_true(a->at == b->at && a->since == b->since && a->job.v == b->job.v);
        assert_true(a->incarnation == b->incarnation);
        assert_int_equal(a->slots, b->slots);
        assert_int_equal(a->processors, b->processors);
        assert_string_equal(decoded.names[i], a->name.p ? a->name.p : "");
        assert_string_equal(decoded.spaces[i], a->name_space.p ? a->name_space.p : "");
    }
}

/* A reader of spans finds the segment's id in the head, and no spans. */
static void a_block_of_events_has_no_spans(void **state)
{
    (void)state;
    struct mr_trace_block head;
    mr_trace_events_add(&block, &all[1]);
    assert_int_equal(mr_trace_block_read(mr_buf_str(&block), &head), MR_OK);
    assert_int_equal(head.count, 0);
    assert_true(mr_trace_is_segment(head.job));
    assert_int_equal(head.job.v, 1700000000);
    assert_int_equal(mr_trace_decode(mr_buf_str(&block), NULL, NULL), MR_OK);
}

static void a_long_name_is_left_out(void **state)
{
    (void)state;
    static char name[MR_TRACE_NAME_BYTES_MAX + 1];
    memset(name, 'x', sizeof name);
    struct mr_trace_event e = all[1];
    e.name = mr_str_of(name, sizeof name);
    mr_trace_events_add(&block, &e);
    assert_int_equal(mr_trace_events_decode(mr_buf_str(&block), on_event, NULL), MR_OK);
    assert_string_equal(decoded.names[0], "");
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++)
        mr_trace_events_add(&block, &all[i]);
    for (size_t n = 0; n < block.n; n++) {
        /* The copy has exactly n bytes, so that the sanitizer notices a read beyond them. */
        unsigned char *cut = mr_copy(block.p, n ? n : 1);
        assert_int_equal(mr_trace_events_decode(mr_str_of(cut, n), on_event, NULL), MR_EFORMAT);
        mr_release(cut);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(events_come_back), T(a_block_of_events_has_no_spans),
        T(a_long_name_is_left_out), T(every_cut_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
