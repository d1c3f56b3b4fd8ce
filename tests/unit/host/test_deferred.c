/* host/deferred: items run in order, and items that they add run in the next round. */
#include "host/deferred.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct left {
    struct mr_deferred later;
    unsigned order[8], count;
};

static struct left left;

static void leave_once_more(void *p)
{
    left.order[left.count++] = (unsigned)(uintptr_t)p;
    if (left.count < 3) mr_deferred_add(&left.later, leave_once_more, (void *)((uintptr_t)p + 10));
}

static void items_added_in_a_round_run_in_the_next_round(void **state)
{
    (void)state;
    left = (struct left){0};
    mr_deferred_add(&left.later, leave_once_more, (void *)1);
    mr_deferred_add(&left.later, leave_once_more, (void *)2);
    assert_int_equal(mr_deferred_run(&left.later), 2);
    /* Items 11 and 12, which items 1 and 2 added, have not run yet. */
    assert_int_equal(left.count, 2);
    assert_int_equal(mr_deferred_run(&left.later), 2);
    assert_int_equal(mr_deferred_run(&left.later), 0);
    const unsigned order[] = {1, 2, 11, 12};
    assert_memory_equal(left.order, order, sizeof order);
    mr_deferred_fini(&left.later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_added_in_a_round_run_in_the_next_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
