/* Which message brought a task to its worker, and when the worker received the message. */
#include "services/scheduler/telemetry/receipts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_task_came_with_the_first_message_after_it_was_assigned(void **state)
{
    (void)state;
    struct mr_receipts r = {0};
    const mr_time times[] = {1500, 2500};
    assert_int_equal(mr_receipts_find(&r, 100), 0);
    mr_receipts_sent(&r, 1000);
    mr_receipts_sent(&r, 2000);
    mr_receipts_sent(&r, 3000);
    assert_int_equal(mr_receipts_find(&r, 100), 0); /* the worker has not told the times yet */
    mr_receipts_received(&r, 0, times, 2, 0);
    assert_int_equal(mr_receipts_find(&r, 100), 1500);
    assert_int_equal(mr_receipts_find(&r, 1000), 1500);
    assert_int_equal(mr_receipts_find(&r, 1001), 2500);
    assert_int_equal(mr_receipts_find(&r, 2001), 0);
    assert_int_equal(mr_receipts_find(&r, 3001), 0); /* assigned after the last message */
}

static void the_workers_clock_is_converted(void **state)
{
    (void)state;
    struct mr_receipts r = {0};
    const mr_time before = 500, after = 5000;
    mr_receipts_sent(&r, 1000);
    mr_receipts_received(&r, 0, &before, 1, 700);
    assert_int_equal(mr_receipts_find(&r, 1000), 1200);
    mr_receipts_received(&r, 0, &after, 1, -3000);
    assert_int_equal(mr_receipts_find(&r, 1000), 2000);
    mr_receipts_received(&r, 0, &before, 1, 0); /* a message is not received before it is sent */
    assert_int_equal(mr_receipts_find(&r, 1000), 1000);
}

static void messages_that_are_not_kept_are_ignored(void **state)
{
    (void)state;
    struct mr_receipts r = {0};
    mr_time times[MR_RECEIPTS_MAX + 2];
    for (uint32_t i = 0; i < MR_RECEIPTS_MAX + 2; i++) {
        mr_receipts_sent(&r, 1000 + i * 10);
        times[i] = 1005 + i * 10;
    }
    mr_receipts_received(&r, 0, times, MR_RECEIPTS_MAX + 2, 0);
    mr_receipts_received(&r, MR_RECEIPTS_MAX + 2, times, 3, 0); /* no such messages were sent */
    /* The times of messages 0 and 1 are forgotten. So it is unknown whether message 1 was sent
     * before 1011 or 1020. */
    assert_int_equal(mr_receipts_find(&r, 1011), 0);
    assert_int_equal(mr_receipts_find(&r, 1020), 0);
    assert_int_equal(mr_receipts_find(&r, 1021), 1035);
    assert_int_equal(
        mr_receipts_find(&r, 1000 + (MR_RECEIPTS_MAX + 1) * 10), 1005 + (MR_RECEIPTS_MAX + 1) * 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_came_with_the_first_message_after_it_was_assigned),
        cmocka_unit_test(the_workers_clock_is_converted),
        cmocka_unit_test(messages_that_are_not_kept_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
