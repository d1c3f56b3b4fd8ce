/* Rates from counters, and the tasks a second. */
#include "services/scheduler/live/rate.h"
#include "services/scheduler/live/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static void rates_are_differences_over_time(void **state)
{
    (void)state;
    struct mr_counters last = {0};
    struct mr_rates r;
    const struct mr_counters a = {.at = MR_SECOND, .cpu_ns = MR_SECOND, .sent_bytes = 100};
    const struct mr_counters b = {.at = 3 * MR_SECOND,
        .cpu_ns = 4 * MR_SECOND,
        .sent_bytes = 300,
        .received_bytes = 10,
        .written_bytes = 4};
    assert_false(mr_rates_next(&last, &a, &r));
    assert_true(mr_rates_next(&last, &b, &r));
    assert_int_equal(r.cpu_milli, 1500);
    assert_int_equal(r.sent_per_s, 100);
    assert_int_equal(r.received_per_s, 5);
    assert_int_equal(r.written_per_s, 2);
}

static void another_process_begins_anew(void **state)
{
    (void)state;
    struct mr_counters last = {.at = 1, .cpu_ns = 100, .sent_bytes = 100};
    struct mr_rates r = {.cpu_milli = 7};
    const struct mr_counters now = {.at = MR_SECOND, .cpu_ns = 200, .sent_bytes = 5};
    const struct mr_counters next = {.at = 2 * MR_SECOND, .cpu_ns = 200, .sent_bytes = 8};
    assert_false(mr_rates_next(&last, &now, &r));
    assert_int_equal(r.cpu_milli, 0);
    assert_true(mr_rates_next(&last, &next, &r));
    assert_int_equal(r.sent_per_s, 3);
}

static void two_reports_at_one_time_have_no_rate(void **state)
{
    (void)state;
    struct mr_counters last = {.at = 5, .cpu_ns = 1};
    struct mr_rates r;
    assert_false(mr_rates_next(&last, &(struct mr_counters){.at = 5, .cpu_ns = 2}, &r));
    assert_int_equal(last.cpu_ns, 1);
}

static void the_speed_is_that_of_the_last_points(void **state)
{
    (void)state;
    struct mr_live_speed s = {0};
    const mr_time begin = 100 * MR_SECOND;
    assert_true(mr_live_speed_next(&s, begin, 1000) == 0);
    assert_true(mr_live_speed_next(&s, begin + MR_SECOND / 4, 1100) == 400);
    /* 100 tasks each quarter of a second; then nothing */
    for (unsigned i = 2; i < 10; i++)
        assert_true(mr_live_speed_next(&s, begin + i * (MR_SECOND / 4), 1000 + 100 * i) == 400);
    double speed = 400;
    for (unsigned i = 10; i < 15; i++) {
        double next = mr_live_speed_next(&s, begin + i * (MR_SECOND / 4), 1900);
        assert_true(next < speed);
        speed = next;
    }
    assert_true(speed == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_differences_over_time),
        cmocka_unit_test(another_process_begins_anew),
        cmocka_unit_test(two_reports_at_one_time_have_no_rate),
        cmocka_unit_test(the_speed_is_that_of_the_last_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
