/* host/os/process_dir: directories end with their process, and the directory of a killed process is
 * removed by a later sweep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/os/file.h"
#include "host/os/process_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[] = "/tmp/mr-base-XXXXXX";

static int setup(void **state)
{
    (void)state;
    memcpy(base + sizeof base - 7, "XXXXXX", 6);
    return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(base); /* fails if a test has left a file */
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void fill(const char *path)
{
    char at[128];
    (void)snprintf(at, sizeof at, "%s/a/b", path);
    assert_int_equal(mr_file_make_dirs(at, 0700, NULL), MR_OK);
    (void)snprintf(at, sizeof at, "%s/a/b/file", path);
    assert_int_equal(mr_file_write(at, MR_STR("x"), 0600, NULL), MR_OK);
    (void)snprintf(at, sizeof at, "%s/a/link", path);
    assert_int_equal(symlink(base, at), 0);
}

/* Makes and fills a directory in a child process, which is then killed. */
static void leave_one(char path[MR_PROCESS_DIR_PATH_MAX])
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct mr_process_dir s = {0};
        if (mr_process_dir_open(&s, base, "millrace-it", NULL)) _exit(1);
        fill(s.path);
        if (write(ends[1], s.path, sizeof s.path) != (ssize_t)sizeof s.path) _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ends[0], path, MR_PROCESS_DIR_PATH_MAX), MR_PROCESS_DIR_PATH_MAX);
    /* The directory stays, because its process is alive. */
    assert_int_equal(mr_process_dir_sweep(base, "millrace-it"), 0);
    assert_true(exists(path));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void closing_removes_it_with_all_in_it(void **state)
{
    (void)state;
    struct mr_process_dir s = {0};
    mr_process_dir_close(&s); /* does nothing: no directory is open */
    assert_int_equal(mr_process_dir_open(&s, base, "millrace-it", NULL), MR_OK);
    char path[MR_PROCESS_DIR_PATH_MAX];
    memcpy(path, s.path, sizeof path);
    fill(path);
    mr_process_dir_close(&s);
    assert_false(exists(path));
    assert_true(exists(base)); /* the removal did not follow the symbolic link */
}

static void what_a_killed_process_left_is_swept_and_what_lives_stays(void **state)
{
    (void)state;
    char left[MR_PROCESS_DIR_PATH_MAX];
    struct mr_process_dir mine = {0};
    assert_int_equal(mr_process_dir_open(&mine, base, "millrace-it", NULL), MR_OK);
    leave_one(left);
    assert_true(exists(left));
    assert_int_equal(mr_process_dir_sweep(base, "millrace-it"), 1);
    assert_false(exists(left));
    assert_true(exists(mine.path));
    assert_int_equal(mr_process_dir_sweep("/nonexistent", "millrace-it"), 0);
    mr_process_dir_close(&mine);
}

static void only_directories_of_its_own_kind_are_swept(void **state)
{
    (void)state;
    static const char *const others[] = {"millrace-it", "millrace-it-", "millrace-it-1234567",
        "millrace-item-123456", "other-123456", "millrace-it-12345"};
    char path[128];
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", base, others[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    char link[128];
    (void)snprintf(link, sizeof link, "%s/millrace-it-abcdef", base);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(mr_process_dir_sweep(base, "millrace-it"), 0);
    assert_int_equal(unlink(link), 0);
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", base, others[i]);
        assert_int_equal(rmdir(path), 0);
    }
}

static void who_makes_and_who_sweeps_at_once_do_not_meet(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* If an assertion below fails, nobody kills the child; it ends when its parent ends. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            (void)mr_process_dir_sweep(base, "millrace-it");
    }
    for (int i = 0; i < 2000; i++) {
        struct mr_process_dir s = {0};
        assert_int_equal(mr_process_dir_open(&s, base, "millrace-it", NULL), MR_OK);
        assert_true(exists(s.path));
        mr_process_dir_close(&s);
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_base_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct mr_process_dir s = {0};
    struct mr_error e = {0};
    assert_int_equal(mr_process_dir_open(&s, "/nonexistent", "millrace-it", &e), MR_EIO);
    assert_non_null(strstr(e.text, "\"/nonexistent/millrace-it-"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(closing_removes_it_with_all_in_it),
        T(what_a_killed_process_left_is_swept_and_what_lives_stays),
        T(only_directories_of_its_own_kind_are_swept),
        T(who_makes_and_who_sweeps_at_once_do_not_meet),
        T(a_base_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
