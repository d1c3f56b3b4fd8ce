/* host/os/fd_deadlines: a socket past its deadline is shut down once, and no other socket is shut
 * down. */
#include "host/os/fd_deadlines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

static bool is_shut(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void only_a_late_socket_is_shut_down(void **state)
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
    assert_int_equal(mr_fd_deadlines_reap(d, 250, &next), 0); /* no socket is shut down twice */
    mr_fd_deadlines_set(d, early[0], 1000);                   /* replaces the earlier deadline */
    assert_int_equal(mr_fd_deadlines_reap(d, 400, &next), 0);
    mr_fd_deadlines_forget(d, 12345); /* does nothing: descriptor 12345 has no deadline */
    mr_fd_deadlines_free(&d);
    for (int i = 0; i < 2; i++) {
        (void)close(late[i]);
        (void)close(early[i]);
        (void)close(never[i]);
        (void)close(gone[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_late_socket_is_shut_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
