/* Samples are reduced to points, without losing a peak, and processes come in pages. */
#include "services/scheduler/history/sample_series.h"

#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static struct mr_series series;

static int teardown(void **state)
{
    (void)state;
    mr_series_fini(&series);
    return 0;
}

static void begin(struct mr_series_ask ask)
{
    if (!ask.until_ns) ask.until_ns = 1000;
    if (!ask.points_max) ask.points_max = 10;
    if (!ask.processes_max) ask.processes_max = 8;
    mr_series_init(&series, &ask);
}

static void add(const char *process, uint64_t at, uint64_t memory)
{
    const struct mr_sample s = {.process = mr_str(process),
        .node = MR_STR_INIT("n"),
        .kind = MR_SAMPLE_WORKER,
        .at = at,
        .values = {[MR_SAMPLE_MEMORY_BYTES] = memory}};
    mr_series_add(&series, &s);
}

static void a_point_has_the_smallest_the_largest_and_the_sum(void **state)
{
    (void)state;
    begin((struct mr_series_ask){0});
    add("w", 10, 5);
    add("w", 20, 1);
    add("w", 30, 9);
    add("w", 250, 4);
    assert_int_equal(series.count, 1);
    const struct mr_series_process *p = &series.processes[0];
    assert_string_equal(p->name, "w");
    assert_string_equal(p->node, "n");
    assert_int_equal(p->points_count, 2);
    assert_int_equal(p->points[0].interval, 0);
    assert_int_equal(p->points[0].count, 3);
    assert_int_equal(p->points[0].min[MR_SAMPLE_MEMORY_BYTES], 1);
    assert_int_equal(p->points[0].max[MR_SAMPLE_MEMORY_BYTES], 9);
    assert_int_equal(p->points[0].sum[MR_SAMPLE_MEMORY_BYTES], 15);
    assert_int_equal(p->points[1].interval, 2);
    assert_int_equal(p->points[1].min[MR_SAMPLE_MEMORY_BYTES], 4);
}

static void samples_outside_of_the_window_are_left_out(void **state)
{
    (void)state;
    begin((struct mr_series_ask){.from_ns = 100, .until_ns = 200});
    add("w", 99, 1);
    add("w", 200, 1);
    assert_int_equal(series.count, 0);
    add("w", 100, 1);
    add("w", 199, 1);
    assert_int_equal(series.processes[0].points_count, 2);
    assert_int_equal(series.processes[0].points[1].interval, 9);
}

static void there_are_never_more_points_than_asked_for(void **state)
{
    (void)state;
    begin((struct mr_series_ask){.until_ns = 1009, .points_max = 7});
    for (uint64_t at = 0; at < 1009; at++)
        add("w", at, at);
    assert_int_equal(series.processes[0].points_count, 7);
    assert_int_equal(series.processes[0].points[6].max[MR_SAMPLE_MEMORY_BYTES], 1008);
}

static void a_late_sample_finds_its_point(void **state)
{
    (void)state;
    begin((struct mr_series_ask){0});
    add("w", 950, 1);
    add("w", 50, 2);
    add("w", 450, 3);
    add("w", 55, 4);
    const struct mr_series_process *p = &series.processes[0];
    assert_int_equal(p->points_count, 3);
    assert_int_equal(p->points[0].count, 2);
    assert_int_equal(p->points[1].interval, 4);
    assert_int_equal(p->points[2].interval, 9);
}

static void a_page_has_the_smallest_names_with_all_their_samples(void **state)
{
    (void)state;
    begin((struct mr_series_ask){.processes_max = 2});
    for (uint64_t round = 0; round < 3; round++) {
        add("d", round * 100, 1);
        add("b", round * 100, 1);
        add("c", round * 100, 1);
        if (round) add("a", round * 100, 1);
    }
    assert_int_equal(series.count, 2);
    assert_true(series.more);
    assert_string_equal(series.processes[0].name, "a");
    assert_string_equal(series.processes[1].name, "b");
    assert_int_equal(series.processes[0].points_count, 2);
    assert_int_equal(series.processes[1].points_count, 3);
}

static void the_next_page_follows_the_last_name(void **state)
{
    (void)state;
    begin((struct mr_series_ask){.after = "b"});
    add("a", 1, 1);
    add("b", 1, 1);
    add("ba", 1, 1);
    add("c", 1, 1);
    assert_int_equal(series.count, 2);
    assert_false(series.more);
    assert_string_equal(series.processes[0].name, "ba");
}

static void one_process_can_be_asked_for(void **state)
{
    (void)state;
    begin((struct mr_series_ask){.process = "b"});
    add("a", 1, 1);
    add("b", 1, 1);
    add("bb", 1, 1);
    assert_int_equal(series.count, 1);
    assert_string_equal(series.processes[0].name, "b");
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_point_has_the_smallest_the_largest_and_the_sum),
        TEST(samples_outside_of_the_window_are_left_out),
        TEST(there_are_never_more_points_than_asked_for),
        TEST(a_late_sample_finds_its_point),
        TEST(a_page_has_the_smallest_names_with_all_their_samples),
        TEST(the_next_page_follows_the_last_name),
        TEST(one_process_can_be_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
