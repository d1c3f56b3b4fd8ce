/* host/sleep_gate: no wake-up is lost. host/os/fd_deadlines: a late socket is shut down, once, and
 * no other. */
#include "host/sleep_gate.h"
#include "host/inbox.h"
#include "host/deferred.h"
#include "host/os/fd_deadlines.h"
#include "host/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 20000

static void a_gate_wakes_exactly_the_sleeper(void **state)
{
    (void)state;
    struct mr_sleep_gate g = {0};
    assert_false(mr_sleep_gate_is_closed(&g));
    assert_true(mr_sleep_gate_close(&g));
    assert_true(mr_sleep_gate_is_closed(&g));
    assert_true(mr_sleep_gate_open(&g));  /* asleep: wake it */
    assert_false(mr_sleep_gate_open(&g)); /* awake: only told */
    assert_false(mr_sleep_gate_close(&g));
    assert_true(mr_sleep_gate_close(&g)); /* it has looked again */
}

struct pair {
    struct mr_sleep_gate gate;
    struct mr_inbox *items; /* what the sleeper looks for */
    struct mr_inbox *wakes; /* how it is woken */
};

static void produce(void *ctx)
{
    struct pair *p = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        while (mr_inbox_push(p->items, &i)) {
        }
        char wake = 1;
        if (mr_sleep_gate_open(&p->gate)) assert_int_equal(mr_inbox_push(p->wakes, &wake), 0);
    }
}

static void nothing_is_missed_between_two_threads(void **state)
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
        } else if (mr_sleep_gate_close(&p.gate)) {
            while (!mr_inbox_wait(p.wakes, MR_NEVER, &wake, 1)) {
            }
        }
    }
    mr_thread_join(&t);
    mr_inbox_free(&p.items);
    mr_inbox_free(&p.wakes);
}

static bool is_shut(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void only_who_is_late_is_shut_down(void **state)
{
    (void)state;
    struct mr_fd_deadlines *d = mr_fd_deadlines_new();
    int late[2], early[2], never[2], gone[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, late), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, early), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, never), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, gone), 0);
    mr_fd_deadlines_set(d, late[0], 100);
    mr_fd_deadlines_set(d, early[0], 300);
    mr_fd_deadlines_set(d, never[0], MR_NEVER);
    mr_fd_deadlines_set(d, gone[0], 100);
    mr_fd_deadlines_forget(d, gone[0]);
    mr_time next;
    assert_int_equal(mr_fd_deadlines_reap(d, 200, &next), 1);
    assert_int_equal(next, 300);
    assert_true(is_shut(late[1]));
    assert_false(is_shut(early[1]) || is_shut(never[1]) || is_shut(gone[1]));
    assert_int_equal(mr_fd_deadlines_reap(d, 250, &next), 0); /* once is enough */
    mr_fd_deadlines_set(d, early[0], 1000);                   /* it moved */
    assert_int_equal(mr_fd_deadlines_reap(d, 400, &next), 0);
    mr_fd_deadlines_forget(d, 12345); /* never seen */
    mr_fd_deadlines_free(&d);
    for (int i = 0; i < 2; i++) {
        (void)close(late[i]);
        (void)close(early[i]);
        (void)close(never[i]);
        (void)close(gone[i]);
    }
}

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

/* A loop's own thread that found no room in its inbox ended the process. */
static void what_is_left_for_later_runs_in_the_next_round(void **state)
{
    (void)state;
    left = (struct left){0};
    mr_deferred_add(&left.later, leave_once_more, (void *)1);
    mr_deferred_add(&left.later, leave_once_more, (void *)2);
    assert_int_equal(mr_deferred_run(&left.later), 2);
    assert_int_equal(left.count, 2); /* what these left waits */
    assert_int_equal(mr_deferred_run(&left.later), 2);
    assert_int_equal(mr_deferred_run(&left.later), 0);
    const unsigned order[] = {1, 2, 11, 12};
    assert_memory_equal(left.order, order, sizeof order);
    mr_deferred_fini(&left.later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gate_wakes_exactly_the_sleeper),
        cmocka_unit_test(nothing_is_missed_between_two_threads),
        cmocka_unit_test(only_who_is_late_is_shut_down),
        cmocka_unit_test(what_is_left_for_later_runs_in_the_next_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
