/* host/parker: no wake-up is lost. */
#include "host/inbox.h"
#include "host/parker.h"
#include "host/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ROUNDS 20000

static void unpark_wakes_only_a_parked_sleeper(void **state)
{
    (void)state;
    struct mr_parker parker = {0};
    assert_false(mr_parker_is_parked(&parker));
    assert_true(mr_parker_park(&parker));
    assert_true(mr_parker_is_parked(&parker));
    assert_true(mr_parker_unpark(&parker));  /* true: the owner is parked and has to be woken */
    assert_false(mr_parker_unpark(&parker)); /* false: the owner is not parked any more */
    assert_false(mr_parker_park(&parker));
    /* The notification has been used up, so the owner may park. */
    assert_true(mr_parker_park(&parker));
}

struct pair {
    struct mr_parker parker;
    struct mr_inbox *items; /* the queue that the sleeper reads */
    struct mr_inbox *wakes; /* wakes the sleeper */
};

static void produce(void *ctx)
{
    struct pair *p = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        while (mr_inbox_push(p->items, &i)) {
        }
        char wake = 1;
        if (mr_parker_unpark(&p->parker)) assert_int_equal(mr_inbox_push(p->wakes, &wake), 0);
    }
}

static void no_wake_up_is_lost_between_two_threads(void **state)
{
    (void)state;
    struct pair p = {{0}, mr_inbox_new(64, sizeof(int)), mr_inbox_new(64, 1)};
    struct mr_thread *t = mr_thread_start("producer", produce, &p);
    for (int expected = 0; expected < ROUNDS;) {
        int got;
        char wake;
        if (mr_inbox_take(p.items, &got, 1)) {
            assert_int_equal(got, expected);
            expected++;
        } else if (mr_parker_park(&p.parker)) {
            while (!mr_inbox_wait(p.wakes, MR_NEVER, &wake, 1)) {
            }
        }
    }
    mr_thread_join(&t);
    mr_inbox_free(&p.items);
    mr_inbox_free(&p.wakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpark_wakes_only_a_parked_sleeper),
        cmocka_unit_test(no_wake_up_is_lost_between_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
