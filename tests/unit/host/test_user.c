/* host/os/user: calls on files as another user. If the test does not run as root, it checks only
 * what is refused. */
#include "host/os/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define GROUP 54321

/* A thread that acts for another user must not keep root's supplementary groups. */
static void who_acts_for_a_user_has_no_other_groups(void **state)
{
    (void)state;
    struct mr_user u;
    struct mr_error e = {0};
    if (geteuid() != 0 || mr_user_find("--exec-user", "nobody", &u, &e)) {
        print_message("SKIPPED: acting for another user was not tried: not root (%s)\n", e.text);
        return;
    }
    const gid_t before[] = {GROUP, GROUP + 1};
    assert_int_equal(setgroups(2, before), 0);
    char path[] = "/tmp/mr-user-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(fchown(fd, 0, GROUP), 0);
    assert_int_equal(fchmod(fd, 0640), 0);
    (void)close(fd);
    gid_t now[8];
    mr_user_enter(&u);
    int groups = getgroups(8, now);
    int got = open(path, O_RDONLY | O_CLOEXEC);
    mr_user_leave();
    assert_int_equal(got, -1);
    assert_int_equal(groups, 0);
    assert_int_equal(getgroups(8, now), 2);
    assert_memory_equal(now, before, sizeof before);
    got = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(got >= 0);
    (void)close(got);
    (void)unlink(path);
}

/* --exec-user needs a process that was started as root. */
static void another_user_is_refused_where_the_process_is_not_root(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct mr_user u;
        struct mr_error e = {0};
        if (geteuid() == 0 && (setgroups(0, NULL) || setgid(65534) || setuid(65534))) _exit(2);
        int err = mr_user_find("--exec-user", "nobody", &u, &e);
        bool is_said = strstr(e.text, "only a process that was started as root") != NULL;
        _exit(err == MR_EPERM && is_said ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_acts_for_a_user_has_no_other_groups),
        cmocka_unit_test(another_user_is_refused_where_the_process_is_not_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
