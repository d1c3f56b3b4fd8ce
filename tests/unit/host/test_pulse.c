/* host/pulse: the time of a pause is found between the times at which a thread was alive. */
#include "host/pulse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS(t) ((mr_time)(t)*MR_MS)

static void narrowed_is(const struct mr_pulse *p, mr_time until, mr_time from_ms, mr_time until_ms)
{
    mr_time from = 0;
    mr_pulse_narrow(p, &from, &until);
    assert_int_equal(from, MS(from_ms));
    assert_int_equal(until, MS(until_ms));
}

static void a_pause_is_found_between_two_marks(void **state)
{
    (void)state;
    struct mr_pulse p = {0};
    for (mr_time t = 1000; t < 1010; t++)
        mr_pulse_mark(&p, MS(t));
    for (mr_time t = 1500; t < 1504; t++)
        mr_pulse_mark(&p, MS(t));
    narrowed_is(&p, MS(1504), 1009, 1500);
}

static void a_pause_may_last_until_now(void **state)
{
    (void)state;
    struct mr_pulse p = {0};
    for (mr_time t = 1000; t < 1100; t++) /* more marks than are kept */
        mr_pulse_mark(&p, MS(t));
    narrowed_is(&p, MS(1400), 1099, 1400);
}

static void without_marks_nothing_is_narrowed(void **state)
{
    (void)state;
    struct mr_pulse p = {0};
    narrowed_is(&p, MS(700), 0, 700);
}

static void marks_less_than_a_millisecond_apart_are_left_out(void **state)
{
    (void)state;
    struct mr_pulse p = {0};
    mr_pulse_mark(&p, MS(10));
    for (mr_time t = 1; t < 100; t++)
        mr_pulse_mark(&p, MS(10) + t * MR_US);
    mr_time from = MS(10), until = MS(20);
    mr_pulse_narrow(&p, &from, &until);
    assert_int_equal(from, MS(10));
}

/* Each of two threads narrows the pause further. */
static void two_threads_narrow_a_pause_together(void **state)
{
    (void)state;
    struct mr_pulse a = {0}, b = {0};
    mr_pulse_mark(&a, MS(100));
    mr_pulse_mark(&a, MS(510));
    mr_pulse_mark(&b, MS(130));
    mr_pulse_mark(&b, MS(500));
    mr_time from = MS(50), until = MS(520);
    mr_pulse_narrow(&a, &from, &until);
    mr_pulse_narrow(&b, &from, &until);
    assert_int_equal(from, MS(130));
    assert_int_equal(until, MS(500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_pause_is_found_between_two_marks),
        cmocka_unit_test(a_pause_may_last_until_now),
        cmocka_unit_test(without_marks_nothing_is_narrowed),
        cmocka_unit_test(marks_less_than_a_millisecond_apart_are_left_out),
        cmocka_unit_test(two_threads_narrow_a_pause_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
