/* host/inbox between real threads. A wait reaches TIMEOUT only in a test that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/clock.h"
#include "host/inbox.h"
#include "host/wake_counter.h"
#include "host/thread.h"

#include <stdatomic.h>

#define SENDERS 3
#define EACH 20000
#define TIMEOUT (20 * MR_SECOND)

struct item {
    uint32_t sender;
    uint32_t number;
};

struct sender {
    struct mr_inbox *inbox;
    uint32_t id;
};

static void send_all(void *ctx)
{
    const struct sender *s = ctx;
    for (uint32_t i = 0; i < EACH; i++) {
        struct item item = {s->id, i};
        assert_int_equal(mr_inbox_push_wait(s->inbox, &item, mr_clock_now() + TIMEOUT), MR_OK);
    }
}

static void items_of_many_threads_arrive_once_and_in_order(void **state)
{
    (void)state;
    struct mr_inbox *in = mr_inbox_new(64, sizeof(struct item));
    struct sender senders[SENDERS];
    struct mr_thread *threads[SENDERS];
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){in, i};
        threads[i] = mr_thread_start("sender", send_all, &senders[i]);
    }
    uint32_t next[SENDERS] = {0};
    uint32_t total = 0;
    mr_time until = mr_clock_now() + TIMEOUT;
    while (total < SENDERS * EACH) {
        struct item items[16];
        size_t n = mr_inbox_wait(in, until, items, 16);
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(items[i].number, next[items[i].sender]);
            next[items[i].sender]++;
        }
        total += (uint32_t)n;
    }
    for (uint32_t i = 0; i < SENDERS; i++)
        mr_thread_join(&threads[i]);
    assert_true(mr_inbox_is_empty(in));
    mr_inbox_free(&in);
}

struct answer {
    struct mr_inbox *to, *back;
};

static void answer_all(void *ctx)
{
    const struct answer *a = ctx;
    for (uint32_t n; mr_inbox_wait_eager(a->to, &n, 1);)
        assert_int_equal(mr_inbox_push(a->back, &n), MR_OK);
}

static void an_eager_owner_misses_nothing_and_hears_of_the_end(void **state)
{
    (void)state;
    struct answer a = {mr_inbox_new(4, sizeof(uint32_t)), mr_inbox_new(4, sizeof(uint32_t))};
    struct mr_thread *t = mr_thread_start("answers", answer_all, &a);
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t got = 0;
        /* The pause is longer than the time for which an eager wait polls, so the other thread
         * sleeps. */
        if (i % 1000 == 999) mr_clock_sleep(MR_MS);
        assert_int_equal(mr_inbox_push(a.to, &i), MR_OK);
        assert_int_equal(mr_inbox_wait(a.back, mr_clock_now() + TIMEOUT, &got, 1), 1);
        assert_int_equal(got, i);
    }
    mr_inbox_close(a.to);
    mr_thread_join(&t);
    mr_inbox_free(&a.to);
    mr_inbox_free(&a.back);
}

static void a_full_inbox_refuses_and_keeps_what_it_has(void **state)
{
    (void)state;
    struct mr_inbox *in = mr_inbox_new(4, sizeof(int));
    for (int i = 0; i < 4; i++)
        assert_int_equal(mr_inbox_push(in, &i), MR_OK);
    int more = 9;
    assert_int_equal(mr_inbox_push(in, &more), MR_ELIMIT);
    assert_int_equal(mr_inbox_push_wait(in, &more, mr_clock_now()), MR_ETIMEOUT);
    int out[8];
    assert_int_equal(mr_inbox_take(in, out, 8), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(out[i], i);
    assert_int_equal(mr_inbox_push(in, &more), MR_OK);
    mr_inbox_free(&in);
}

/* Takes five items. Sleeps while the inbox is empty. */
static void take_five(void *ctx)
{
    int out[8];
    for (size_t n = 0; n < 5;)
        n += mr_inbox_wait(ctx, MR_NEVER, out, 8);
}

static void who_waits_for_room_wakes_an_owner_that_sleeps_through_what_was_put(void **state)
{
    (void)state;
    struct mr_inbox *in = mr_inbox_new(4, sizeof(int));
    struct mr_thread *t = mr_thread_start("owner", take_five, in);
    /* Gives the owner time to sleep. If the owner does not sleep, the test still passes. */
    mr_clock_sleep(5 * MR_MS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(mr_inbox_push_quiet(in, &i), MR_OK);
    int more = 4;
    int err = mr_inbox_push_wait(in, &more, mr_clock_now() + TIMEOUT);
    if (err) mr_inbox_wake(in); /* lets the owner end, so that the test fails and does not hang */
    if (err) (void)mr_inbox_push_wait(in, &more, MR_NEVER);
    mr_thread_join(&t);
    mr_inbox_free(&in);
    assert_int_equal(err, MR_OK);
}

static void a_closed_inbox_gives_what_it_has_and_takes_nothing(void **state)
{
    (void)state;
    struct mr_inbox *in = mr_inbox_new(4, sizeof(int));
    int v = 7;
    assert_int_equal(mr_inbox_push(in, &v), MR_OK);
    mr_inbox_close(in);
    assert_int_equal(mr_inbox_push(in, &v), MR_ESTATE);
    assert_true(mr_inbox_is_closed(in));
    int out[2];
    assert_int_equal(mr_inbox_wait(in, MR_NEVER, out, 2), 1);
    assert_int_equal(out[0], 7);
    assert_int_equal(mr_inbox_wait(in, MR_NEVER, out, 2), 0);
    mr_inbox_free(&in);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    struct mr_inbox *in = mr_inbox_new(4, sizeof(int));
    int out[2];
    mr_time until = mr_clock_now() + 2 * MR_MS;
    assert_int_equal(mr_inbox_wait(in, until, out, 2), 0);
    assert_true(mr_clock_now() >= until);
    mr_inbox_wake(in); /* a wake before the wait must not be lost */
    assert_int_equal(mr_inbox_wait(in, MR_NEVER, out, 2), 0);
    mr_inbox_free(&in);
}

/* A waiter makes the owner of an inbox sleep elsewhere, as the gRPC loop does. This waiter sleeps
 * on the inbox `bell`. */
struct outside {
    struct mr_inbox *bell;
    _Atomic int wakes;
    int waits;
    mr_time last_deadline;
};

struct told {
    struct mr_inbox *inbox;
    struct mr_wake_counter wake_counter;
};

/* Sends the numbers 0 to 999. Wakes the owner whenever the wake counter asks for it. */
static void tell(void *ctx)
{
    struct told *t = ctx;
    for (uint32_t i = 0; i < 1000; i++) {
        while (mr_inbox_push_quiet(t->inbox, &i) == MR_ELIMIT)
            ;
        if (mr_wake_counter_add(&t->wake_counter, 1)) mr_inbox_notify(t->inbox);
    }
}

static void who_waits_for_a_count_sleeps_until_it_is_reached(void **state)
{
    (void)state;
    for (uint32_t step = 1; step <= 1000; step *= 10) {
        struct told t = {.inbox = mr_inbox_new(2048, sizeof(uint32_t))};
        struct mr_thread *thread = mr_thread_start("teller", tell, &t);
        uint32_t got[2048];
        size_t n = 0;
        while (n < 1000) {
            uint64_t want = (n / step + 1) * step;
            mr_time until = mr_wake_counter_wait_for(&t.wake_counter, want) ? MR_NEVER : 1;
            n += mr_inbox_wait(t.inbox, until, got, MR_ARRAY_LEN(got));
        }
        mr_thread_join(&thread);
        mr_inbox_free(&t.inbox);
    }
}

static void outside_wait(void *ctx, mr_time deadline)
{
    struct outside *o = ctx;
    int v;
    o->waits++;
    o->last_deadline = deadline;
    (void)mr_inbox_wait(o->bell, deadline, &v, 1);
}

static void outside_wake(void *ctx)
{
    struct outside *o = ctx;
    atomic_fetch_add(&o->wakes, 1);
    mr_inbox_wake(o->bell);
}

static void push_one(void *ctx)
{
    int v = 5;
    (void)mr_inbox_push(ctx, &v);
}

static void with_a_waiter_the_owner_sleeps_there_and_is_woken(void **state)
{
    (void)state;
    struct outside o = {.bell = mr_inbox_new(2, sizeof(int))};
    struct mr_inbox *in = mr_inbox_new(4, sizeof(int));
    mr_inbox_set_waiter(in, (struct mr_waiter){outside_wait, outside_wake, &o});
    int out[2];
    push_one(in);
    assert_int_equal(atomic_load(&o.wakes), 0); /* the owner never slept */
    assert_int_equal(mr_inbox_wait(in, MR_NEVER, out, 2), 1);
    assert_int_equal(o.waits, 1);
    /* The waiter was called with deadline 0, so it did not sleep. */
    assert_int_equal(o.last_deadline, 0);
    struct mr_thread *t = mr_thread_start("push", push_one, in);
    size_t n = 0;
    for (int i = 0; i < 100 && !n; i++)
        n = mr_inbox_wait(in, mr_clock_now() + MR_SECOND, out, 2);
    assert_int_equal(n, 1);
    mr_thread_join(&t);
    mr_inbox_free(&in);
    mr_inbox_free(&o.bell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_of_many_threads_arrive_once_and_in_order),
        cmocka_unit_test(an_eager_owner_misses_nothing_and_hears_of_the_end),
        cmocka_unit_test(a_full_inbox_refuses_and_keeps_what_it_has),
        cmocka_unit_test(who_waits_for_room_wakes_an_owner_that_sleeps_through_what_was_put),
        cmocka_unit_test(a_closed_inbox_gives_what_it_has_and_takes_nothing),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(who_waits_for_a_count_sleeps_until_it_is_reached),
        cmocka_unit_test(with_a_waiter_the_owner_sleeps_there_and_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
