/* Reading a trace span by span: pages without gaps, sums, and the last attempt of a task. */
#include "base/alloc.h"
#include "base/rng.h"
#include "services/scheduler/history/timeline_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SPANS 5000

static struct mr_trace_span spans[SPANS];

static void spans_make(uint64_t ends)
{
    static const struct mr_str ops[] = {MR_STR_INIT("inc"), MR_STR_INIT("add"), MR_STR_INIT("sum")};
    struct mr_rng r;
    mr_rng_init(&r, 9);
    for (uint32_t i = 0; i < SPANS; i++) {
        spans[i] = (struct mr_trace_span){.index = i,
            .attempt = 1,
            .op = ops[i % 3],
            .worker = i % 2 ? MR_STR("w1") : MR_STR("w0"),
            .finished = 1000000 + mr_rng_below(&r, ends) * 100};
        spans[i].started = spans[i].finished - mr_rng_below(&r, 9000) * 100 - 100;
        spans[i].ready = spans[i].started - 500;
        spans[i].cpu_ns = 100;
    }
}

static void gather(const struct mr_trace_want *want, struct mr_trace_gather *g)
{
    mr_trace_gather_init(g, want);
    for (uint32_t i = 0; i < SPANS; i++)
        mr_trace_gather_span(g, &spans[i]);
    mr_trace_gather_finish(g);
}

/* Reads the timeline in pages, one after the other; each page has `page` spans. Checks that each
 * span comes exactly once. */
static void read_all(uint32_t page)
{
    bool *seen = mr_alloc_array(SPANS, sizeof *seen);
    struct mr_trace_want want = {.kind = MR_TRACE_TIMELINE, .spans_max = page};
    uint32_t count = 0;
    for (bool more = true; more;) {
        struct mr_trace_gather g;
        gather(&want, &g);
        for (uint32_t i = 0; i < g.count; i++) {
            const struct mr_trace_span *s = &g.spans[i];
            assert_false(seen[s->index]);
            seen[s->index] = true;
            assert_true(s->finished > want.after_ns);
            assert_true(i == 0 || s->finished >= g.spans[i - 1].finished);
            assert_true(mr_str_eq(g.ops.names[s->op_id], spans[s->index].op));
            assert_true(mr_str_eq(g.workers.names[s->worker_id], spans[s->index].worker));
            count++;
        }
        more = g.more;
        assert_true(!more || g.count >= page);
        if (g.count) want.after_ns = g.spans[g.count - 1].finished;
        mr_trace_gather_fini(&g);
    }
    assert_int_equal(count, SPANS);
    mr_release(seen);
}

static void pages_hold_every_span_once(void **state)
{
    (void)state;
    spans_make(100000);
    read_all(1);
    read_all(333);
    read_all(SPANS - 1);
    read_all(SPANS);
    read_all(100000);
}

/* A thousand spans end in one tick of the clock. A page never ends between two of them. */
static void a_page_does_not_end_within_a_tick(void **state)
{
    (void)state;
    spans_make(6);
    read_all(100);
    read_all(999);
}

static void blocks_behind_the_page_are_passed_over_and_counted(void **state)
{
    (void)state;
    const struct mr_trace_want want = {.kind = MR_TRACE_TIMELINE, .spans_max = 10};
    struct mr_trace_gather g;
    spans_make(100000);
    mr_trace_gather_init(&g, &want);
    for (uint32_t i = 0; i < SPANS; i++)
        mr_trace_gather_span(&g, &spans[i]);
    struct mr_trace_block late = {.count = 7, .finished_min = 1 << 30, .finished_max = 2000000000};
    struct mr_trace_block near = {.count = 7, .finished_min = 1000000, .finished_max = 2000000000};
    uint64_t matched = g.matched;
    assert_false(mr_trace_gather_wants(&g, &late));
    assert_int_equal(g.matched, matched + 7);
    assert_true(mr_trace_gather_wants(&g, &near));
    mr_trace_gather_finish(&g);
    assert_true(g.more);
    mr_trace_gather_fini(&g);
}

static void what_never_started_is_not_shown(void **state)
{
    (void)state;
    const struct mr_trace_want want = {.kind = MR_TRACE_TIMELINE, .spans_max = 100000};
    struct mr_trace_gather g;
    spans_make(100000);
    spans[17].started = 0;
    gather(&want, &g);
    assert_int_equal(g.count, SPANS - 1);
    assert_false(g.more);
    mr_trace_gather_fini(&g);
}

static void a_window_and_a_filter_choose_spans(void **state)
{
    (void)state;
    char *workers[] = {"w1", "w7"};
    uint32_t slots[] = {0, 3};
    const struct mr_trace_filter filter = {workers, slots, 2, 2};
    const struct mr_trace_filter other = {workers, slots + 1, 2, 1};
    struct mr_trace_want want = {
        .kind = MR_TRACE_TIMELINE, .spans_max = 100000, .from_ns = 3000000, .until_ns = 4000000};
    struct mr_trace_gather g;
    spans_make(100000);
    uint32_t all = 0, odd = 0;
    for (uint32_t i = 0; i < SPANS; i++) {
        bool is_there = spans[i].finished > want.from_ns && spans[i].started < want.until_ns;
        all += is_there;
        odd += is_there && i % 2;
    }
    gather(&want, &g);
    assert_int_equal(g.count, all);
    mr_trace_gather_fini(&g);
    want.filter = &filter;
    gather(&want, &g);
    assert_int_equal(g.count, odd);
    assert_true(odd > 0 && odd < all);
    mr_trace_gather_fini(&g);
    want.filter = &other;
    gather(&want, &g);
    assert_int_equal(g.count, 0);
    mr_trace_gather_fini(&g);
}

static void the_last_span_of_a_task_is_found(void **state)
{
    (void)state;
    const struct mr_trace_want want = {.kind = MR_TRACE_TASK, .index = 70};
    const struct mr_trace_block elsewhere = {.count = 1, .index_min = 71, .index_max = 90};
    struct mr_trace_gather g;
    spans_make(100000);
    spans[4000].index = 70;
    spans[4000].attempt = 2;
    gather(&want, &g);
    assert_int_equal(g.count, 1);
    assert_int_equal(g.spans[0].attempt, 2);
    assert_false(mr_trace_gather_wants(&g, &elsewhere));
    mr_trace_gather_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_hold_every_span_once),
        cmocka_unit_test(a_page_does_not_end_within_a_tick),
        cmocka_unit_test(blocks_behind_the_page_are_passed_over_and_counted),
        cmocka_unit_test(what_never_started_is_not_shown),
        cmocka_unit_test(a_window_and_a_filter_choose_spans),
        cmocka_unit_test(the_last_span_of_a_task_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
