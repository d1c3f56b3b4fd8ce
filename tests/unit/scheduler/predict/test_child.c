/* A program that is run, with limits of its time and memory. The programs are those of every
 * system: sh, sleep. */
#include "services/scheduler/predict/child.h"

#include "host/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define MANY_BYTES ((uint64_t)1 << 40)

static struct mr_flag never, at_once = {1};

static int run(
    const char *script, struct mr_predict_child child, struct mr_buf *out, struct mr_error *e)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%s", script);
    char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, text, NULL};
    child.argv = argv;
    if (!child.stop) child.stop = &never;
    mr_buf_init(out, 1000);
    return mr_predict_child_run(&child, out, e);
}

static const struct mr_predict_child roomy = {
    .time_max = 600 * MR_SECOND, .memory_bytes_max = MANY_BYTES};

static void the_output_is_read_to_its_end(void **state)
{
    (void)state;
    struct mr_buf out;
    struct mr_error e = {0};
    assert_int_equal(run("printf one; printf two; cat", roomy, &out, &e), MR_OK);
    assert_true(mr_str_eq(mr_buf_str(&out), MR_STR("onetwo")));
    mr_buf_fini(&out);
}

static void a_program_that_fails_is_an_error(void **state)
{
    (void)state;
    struct mr_buf out;
    struct mr_error e = {0};
    assert_int_equal(run("exit 3", roomy, &out, &e), MR_EINTERNAL);
    assert_string_equal(e.text, "mr-predictor ended with status 3");
    mr_buf_fini(&out);
    assert_int_equal(run("kill -9 $$", roomy, &out, &e), MR_EINTERNAL);
    assert_string_equal(e.text, "mr-predictor was ended by signal 9");
    mr_buf_fini(&out);
    assert_int_equal(run("while :; do echo 0123456789; done", roomy, &out, &e), MR_EINTERNAL);
    mr_buf_fini(&out);
}

static void a_program_that_is_not_there_cannot_be_started(void **state)
{
    (void)state;
    struct mr_buf out;
    struct mr_error e = {0};
    char *argv[] = {(char[]){"/nothing/of/this/name"}, NULL};
    struct mr_predict_child child = roomy;
    child.argv = argv;
    child.stop = &never;
    mr_buf_init(&out, 1000);
    assert_int_equal(mr_predict_child_run(&child, &out, &e), MR_EIO);
    mr_buf_fini(&out);
}

static void a_program_is_killed_when_it_is_stopped_or_its_time_is_over(void **state)
{
    (void)state;
    struct mr_buf out;
    struct mr_error e = {0};
    struct mr_predict_child child = roomy;
    mr_time begin = mr_clock_now();
    child.stop = &at_once;
    assert_int_equal(run("sleep 600", child, &out, &e), MR_ECANCELED);
    mr_buf_fini(&out);
    child.stop = &never;
    child.time_max = 20 * MR_MS;
    /* the program has closed its output, and children of the program are killed with it */
    assert_int_equal(run("exec >&-; sleep 600 & sleep 600", child, &out, &e), MR_ETIMEOUT);
    mr_buf_fini(&out);
    assert_true(mr_clock_now() < mr_time_after(begin, 300 * MR_SECOND));
}

static void a_program_that_takes_too_much_memory_is_killed(void **state)
{
    (void)state;
    struct mr_buf out;
    struct mr_error e = {0};
    struct mr_predict_child child = roomy;
    child.memory_bytes_max = 1; /* every program has more */
    assert_int_equal(run("sleep 600", child, &out, &e), MR_ETOOBIG);
    mr_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_output_is_read_to_its_end),
        cmocka_unit_test(a_program_that_fails_is_an_error),
        cmocka_unit_test(a_program_that_is_not_there_cannot_be_started),
        cmocka_unit_test(a_program_is_killed_when_it_is_stopped_or_its_time_is_over),
        cmocka_unit_test(a_program_that_takes_too_much_memory_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
