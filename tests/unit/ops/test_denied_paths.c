/* ops/roots: no operator reads the cluster's tokens, secrets or state, whatever the data root is
 * and whatever the path looks like. */
#include "ops/roots.h"

#include "base/alloc.h"
#include "host/os/user.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char base[64];

static const char *at(const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static void make(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    (void)fclose(f);
}

/* Makes BASE/data/in, BASE/data/tokens, BASE/data/state/run/x and BASE/data/state/secret. The data
 * root is BASE; the token file and the state directory are denied. */
static int setup(void **state)
{
    static struct mr_roots r;
    struct mr_error e = {0};
    (void)snprintf(base, sizeof base, "/tmp/mr-denied-XXXXXX");
    assert_non_null(mkdtemp(base));
    static const char *const dirs[] = {"data", "data/state", "data/state/run"};
    for (size_t i = 0; i < MR_ARRAY_LEN(dirs); i++)
        assert_int_equal(mkdir(at(dirs[i]), 0700), 0);
    make("data/in", "in");
    make("data/tokens", "0123456789abcdef admin ada\n");
    make("data/state/secret", "s");
    make("data/state/run/x", "x");
    mr_roots_init(&r);
    assert_int_equal(mr_roots_add(&r, base, &e), MR_OK);
    assert_int_equal(mr_denied_add(&r.denied, at("data/tokens"), "the token file", &e), MR_OK);
    assert_int_equal(mr_denied_add(&r.denied, at("data/state"), "of the state", &e), MR_OK);
    *state = &r;
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = {"data/in", "data/tokens", "data/state/secret",
        "data/state/run/x", "data/state/late", "data/link", "data/hard", "data/harder", "data/deep",
        "data/new", "data/a/b/c", "data/a/b", "data/a", "data/state/run", "data/state",
        "data/mount", "data"};
    mr_roots_fini(*state);
    for (size_t i = 0; i < MR_ARRAY_LEN(files); i++)
        (void)remove(at(files[i]));
    (void)rmdir(base);
    return 0;
}

static int opened(const struct mr_roots *r, const char *path, struct mr_error *e)
{
    int fd = -1;
    int err = mr_roots_open(r, mr_str(path), &fd, e);
    if (fd >= 0) (void)close(fd);
    return err;
}

static void refused(const struct mr_roots *r, const char *path, const char *what)
{
    struct mr_error e = {0};
    int err = opened(r, path, &e);
    if (err != MR_EPERM || !strstr(e.text, what) || !strstr(e.text, path))
        fail_msg("%s: %d %s", path, err, e.text);
}

static void what_is_denied_is_refused_in_every_root(void **state)
{
    const struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(opened(r, "data/in", &e), MR_OK);
    refused(r, "data/tokens", "the token file");
    refused(r, at("data/tokens"), "the token file");
    refused(r, "data/state/secret", "of the state");
    refused(r, "data/state/../state/run/x", "of the state");
    refused(r, "data/state", "of the state");
}

static void another_name_of_a_denied_file_is_refused(void **state)
{
    const struct mr_roots *r = *state;
    assert_int_equal(symlink("tokens", at("data/link")), 0);
    assert_int_equal(link(at("data/tokens"), at("data/hard")), 0);
    assert_int_equal(link(at("data/state/secret"), at("data/harder")), 0);
    assert_int_equal(link(at("data/state/run/x"), at("data/deep")), 0);
    refused(r, "data/link", "the token file");
    refused(r, "data/hard", "the token file");
    refused(r, "data/harder", "of the state");
    refused(r, "data/deep", "of the state");
}

static void a_file_with_two_names_that_is_not_denied_is_read(void **state)
{
    const struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(link(at("data/in"), at("data/hard")), 0);
    assert_int_equal(opened(r, "data/hard", &e), MR_OK);
}

static void a_directory_beside_the_denied_one_is_not_denied(void **state)
{
    const struct mr_roots *r = *state;
    struct mr_error e = {0};
    make("data/state2", "y"); /* "data/state" is denied and is a prefix of this path */
    assert_int_equal(opened(r, "data/state2", &e), MR_OK);
    (void)remove(at("data/state2"));
}

static void a_token_file_that_was_replaced_is_refused(void **state)
{
    const struct mr_roots *r = *state;
    make("data/new", "0123456789abcdeX admin ada\n");
    assert_int_equal(link(at("data/new"), at("data/hard")), 0);
    assert_int_equal(rename(at("data/new"), at("data/tokens")), 0);
    refused(r, "data/tokens", "the token file");
    refused(r, "data/hard", "the token file");
}

/* After the token file was opened and before the descriptor is checked, another file takes the name
 * of the token file. */
static void a_token_file_that_is_replaced_while_it_is_opened_is_refused(void **state)
{
    const struct mr_roots *r = *state;
    int fd = open(at("data/tokens"), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    make("data/new", "another\n");
    assert_int_equal(rename(at("data/new"), at("data/tokens")), 0);
    assert_non_null(mr_denied_file(&r->denied, fd));
    (void)close(fd);
}

static void a_denied_file_need_not_exist_at_the_start(void **state)
{
    struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(mr_denied_add(&r->denied, at("data/new"), "made later", &e), MR_OK);
    assert_int_equal(opened(r, "data/new", &e), MR_ENOENT);
    make("data/new", "x");
    refused(r, "data/new", "made later");
}

/* The denied directory and the one above it do not exist yet. The part of its path that exists is a
 * link. */
static void a_denied_directory_below_a_link_need_not_exist_at_the_start(void **state)
{
    struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(symlink(".", at("data/link")), 0);
    assert_int_equal(mr_denied_add(&r->denied, at("data/link/a/b"), "made later", &e), MR_OK);
    assert_int_equal(mkdir(at("data/a"), 0700), 0);
    assert_int_equal(mkdir(at("data/a/b"), 0700), 0);
    make("data/a/b/c", "x");
    refused(r, "data/a/b/c", "made later");
    refused(r, "data/link/a/b/c", "made later");
}

/* If a directory before ".." does not exist, nobody knows yet to which place the path leads. */
static void a_denied_path_that_goes_back_from_nowhere_is_no_path(void **state)
{
    struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(mr_denied_add(&r->denied, at("data/none/../tokens"), "x", &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "none/../tokens"));
    assert_int_equal(mr_denied_add(&r->denied, at("data/none/..x"), "x", &e), MR_OK);
}

static void a_denied_directory_that_is_mounted_twice_is_refused(void **state)
{
    const struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(mkdir(at("data/mount"), 0700), 0);
    if (mount(at("data/state/run"), at("data/mount"), NULL, MS_BIND, NULL)) {
        print_message("a bind mount is not allowed here: skipped\n");
        skip();
    }
    int fd = -1;
    int err = mr_roots_open(r, MR_STR("data/mount/x"), &fd, &e);
    if (fd >= 0) (void)close(fd);
    (void)umount2(at("data/mount"), MNT_DETACH);
    assert_int_equal(err, MR_EPERM);
    assert_non_null(strstr(e.text, "of the state"));
}

static void files_of_proc_are_refused(void **state)
{
    (void)state;
    struct mr_roots r;
    struct mr_error e = {0};
    mr_roots_init(&r);
    assert_int_equal(mr_roots_add(&r, "/", &e), MR_OK);
    refused(&r, "/proc/self/environ", "/proc");
    assert_int_equal(opened(&r, "/etc/passwd", &e), MR_OK);
    mr_roots_fini(&r);
}

/* The error text says whether a file does not exist or may not be read. */
static void why_a_file_is_not_opened_is_said(void **state)
{
    const struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(opened(r, "data/absent", &e), MR_ENOENT);
    assert_non_null(strstr(e.text, "no file \"data/absent\""));
    assert_int_equal(opened(r, "data/in/x", &e), MR_ENOENT);
    refused(r, "/etc/passwd", "lies outside the data root");
    assert_int_equal(symlink("link", at("data/link")), 0);
    refused(r, "data/link", "too many links");
    /* The next check needs another user, who has no right to read "data/in". */
    if (geteuid() != 0) skip();
    const struct mr_user nobody = {.uid = 65534, .gid = 65534};
    mr_user_enter(&nobody);
    int err = opened(r, "data/in", &e);
    mr_user_leave();
    assert_int_equal(err, MR_EPERM);
    assert_non_null(strstr(e.text, "\"data/in\" is there and cannot be read"));
}

static void a_data_root_that_is_denied_stops_the_start(void **state)
{
    struct mr_roots *r = *state;
    struct mr_error e = {0};
    assert_int_equal(mr_roots_check(r, &e), MR_OK);
    assert_int_equal(mr_roots_add(r, at("data/state/run"), &e), MR_OK);
    assert_int_equal(mr_roots_check(r, &e), MR_EPERM);
    assert_non_null(strstr(e.text, "--data-root"));
}

static void files_that_the_environment_names_are_denied(void **state)
{
    struct mr_roots *r = *state;
    struct mr_error e = {0};
    make("data/new", "password");
    assert_int_equal(setenv("MILLRACE_REDIS_PASSWORD_FILE", at("data/new"), 1), 0);
    assert_int_equal(mr_denied_add_environment(&r->denied, &e), MR_OK);
    (void)unsetenv("MILLRACE_REDIS_PASSWORD_FILE");
    refused(r, "data/new", "MILLRACE_REDIS_PASSWORD_FILE");
    assert_int_equal(opened(r, "data/in", &e), MR_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_denied_is_refused_in_every_root),
        TEST(another_name_of_a_denied_file_is_refused),
        TEST(a_file_with_two_names_that_is_not_denied_is_read),
        TEST(a_directory_beside_the_denied_one_is_not_denied),
        TEST(a_token_file_that_was_replaced_is_refused),
        TEST(a_token_file_that_is_replaced_while_it_is_opened_is_refused),
        TEST(a_denied_file_need_not_exist_at_the_start),
        TEST(a_denied_directory_below_a_link_need_not_exist_at_the_start),
        TEST(a_denied_path_that_goes_back_from_nowhere_is_no_path),
        TEST(a_denied_directory_that_is_mounted_twice_is_refused),
        TEST(files_of_proc_are_refused),
        TEST(why_a_file_is_not_opened_is_said),
        TEST(a_data_root_that_is_denied_stops_the_start),
        TEST(files_that_the_environment_names_are_denied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
