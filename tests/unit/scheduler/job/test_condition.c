/* The scheduler's core: loops. What the value of a loop's condition may be, and what the
 * scheduler sends to workers about a loop. */
#include "tests/support/scheduler_rig.h"

#include "base/limits.h"
#include "services/scheduler/core/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define GO MR_STR("\xc2")   /* false as MessagePack */
#define STOP MR_STR("\xc3") /* true as MessagePack */
#define LOOP_TASKS                                                                                 \
    "\"part-${i}\":{\"op\":\"f\",\"args\":[{\"ref\":\"x\"},{\"ref\":\"s\"}],\"for\":{\"i\":2}},"   \
    "\"next\":{\"op\":\"g\",\"args\":{\"each\":{\"ref\":\"part-${i}\"},\"for\":{\"i\":2}}}"
#define LOOP(max, more) "{" LOOP_BODY(max, more)
#define LOOP_OF(max, more, options) "{" LOOP_TEXT(max, more) options "}"
#define LOOP_BODY(max, more) LOOP_TEXT(max, more) "}"
#define LOOP_TEXT(max, more)                                                                       \
    "\"tasks\":{\"x\":{\"value\":7}" more "},\"repeat\":{\"fit\":{\"max\":" max                    \
    ",\"carry\":{\"s\":{\"value\":0}},\"tasks\":{" LOOP_TASKS                                      \
    ",\"done\":{\"op\":\"h\",\"args\":[{\"ref\":\"next\"}]}},"                                     \
    "\"next\":{\"s\":{\"ref\":\"next\"}},\"until\":{\"ref\":\"done\"}}}"

static struct rig_worker join(struct rig *r, const char *name)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = 4};
    return rig_join(r, &spec);
}

static const char *in_round(uint32_t round, const char *key)
{
    static char text[4][64];
    static unsigned at;
    char *out = text[at++ % 4];
    (void)snprintf(out, sizeof text[0], "fit[%u].%s", round, key);
    return out;
}

static void play_parts(struct rig *r, struct rig_worker w, uint64_t job, uint32_t round)
{
    rig_done(r, w, job, in_round(round, "part-0"));
    rig_done(r, w, job, in_round(round, "part-1"));
    rig_done(r, w, job, in_round(round, "next"));
}

static void play(
    struct rig *r, struct rig_worker w, uint64_t job, uint32_t round, struct mr_str until)
{
    play_parts(r, w, job, round);
    rig_done_value(r, w, job, in_round(round, "done"), until);
}

static void what_a_condition_became_is_named(void **state)
{
    const struct {
        struct mr_str value; /* empty: the value is in an object store */
        const char *what;
    } cases[] = {{MR_STR("\xc0"), "null"}, {MR_STR("\xa1x"), "a text"},
        {MR_STR("\xc4\x01x"), "bytes"}, {MR_STR("\x91\x01"), "a list"},
        {MR_STR("\x81\x01\x01"), "an object"}, {MR_STR("\xcb\x7f\xf8\0\0\0\0\0\0"), "NaN"},
        {MR_STR("\xd4\x01x"), "a tensor or table"}, {MR_STR("\xcb\x7f"), "no value"},
        {{0}, "a stored value"}};
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    for (size_t i = 0; i < MR_ARRAY_LEN(cases); i++) {
        uint64_t job = rig_submit(r, LOOP("50", ""));
        play_parts(r, a, job, 0);
        if (cases[i].value.n)
            rig_done_value(r, a, job, in_round(0, "done"), cases[i].value);
        else
            (void)rig_done_object(r, a, job, in_round(0, "done"));
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        struct mr_sched_error e = rig_task(r, job, in_round(0, "done")).error;
        char text[256], expected[256];
        (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(e.message));
        (void)snprintf(expected, sizeof expected,
            "\"fit[0].done\" is the \"until\" of its loop, and became %s; "
            "it must be true, false or a number",
            cases[i].what);
        assert_string_equal(text, expected);
    }
}

/* The task that the rig looks for in each batch, and what was sent of it. */
static struct sent_args {
    uint32_t index, count, uses;
    char bytes[16];
    size_t n;
} sent_args;

static void look_for_args(struct rig *r, uint32_t slot, const struct mr_sched_batch *b)
{
    size_t at = 0;
    (void)r;
    (void)slot;
    for (uint32_t i = 0; i < b->tasks.count; i++) {
        size_t n = mr_sched_cell(&b->tasks, MR_COLUMN_ARGS_BYTES, i);
        if (mr_sched_cell(&b->tasks, MR_COLUMN_INDEX, i) == sent_args.index) {
            sent_args.count++;
            sent_args.uses = mr_sched_cell(&b->tasks, MR_COLUMN_USES, i);
            sent_args.n = MR_MIN(n, sizeof sent_args.bytes);
            memcpy(sent_args.bytes, b->args.p + at, sent_args.n);
        }
        at += n;
    }
}

static void a_loop_whose_count_nobody_wants_ends_where_its_condition_says(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP_OF("50", "", ",\"targets\":[\"fit.s\"]"));
    play(r, a, job, 0, GO);
    play(r, a, job, 1, GO);
    assert_int_equal(rig_state(r, job, in_round(0, "done")), MR_TASK_RELEASED);
    play(r, a, job, 2, STOP);
    rig_done(r, a, job, "fit.s");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* The job goes on after errors. If a round fails, the results of its loop fail too, because they
 * wait for that round. */
static void a_failure_in_a_round_fails_the_results_of_its_loop(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP_OF("50", ",\"y\":{\"op\":\"rare\",\"args\":[1]}",
                                     ",\"on_error\":\"continue\",\"targets\":"
                                     "[\"fit.s\",\"fit.count\",\"y\"]"));
    play(r, a, job, 0, GO);
    rig_done(r, a, job, in_round(1, "part-0"));
    rig_end(r, a, job, in_round(1, "part-1"), MR_OUTCOME_ERROR);
    static const char *const fell[] = {"fit.s", "fit.count", "fit[1].next", "fit[2].part-0"};
    for (size_t i = 0; i < MR_ARRAY_LEN(fell); i++) {
        assert_int_equal(rig_state(r, job, fell[i]), MR_TASK_ERRED);
        assert_int_equal(rig_task(r, job, fell[i]).cause, rig_index(r, job, in_round(1, "part-1")));
    }
    assert_int_equal(rig_notes(r, MR_NOTE_TARGET_FAILED, job), 2);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
}

/* The argument of "fit.count" is the number of rounds that ran. */
static void the_count_of_rounds_is_sent_as_an_argument(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    for (uint32_t stop = 0; stop < 3; stop++) {
        uint64_t job = rig_submit(r, LOOP("3", ""));
        sent_args = (struct sent_args){.index = rig_index(r, job, "fit.count")};
        r->on_batch = look_for_args;
        for (uint32_t i = 0; i < stop; i++)
            play(r, a, job, i, GO);
        /* Rounds are numbered from 0, and the loop has at most 3 rounds. If round 1 says "go on",
         * round 2 is the last. So the count is known before the condition of round 2. */
        assert_int_equal(sent_args.count, stop == 2);
        if (stop < 2) play(r, a, job, stop, STOP);
        assert_int_equal(sent_args.count, 1);
        assert_int_equal(sent_args.n, 2);
        /* the argument is a list of one number */
        assert_int_equal((unsigned char)sent_args.bytes[0], 0x91);
        assert_int_equal(sent_args.bytes[1], stop + 1);
        r->on_batch = NULL;
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    }
}

/* The state of a round may become the loop's result. So the worker of the state is told that the
 * loop uses it, in addition to the tasks of the next round. */
static void the_uses_of_a_state_include_its_loop(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t warm = rig_submit(r, LOOP("2", ""));
    play(r, a, warm, 0, STOP);
    uint64_t off = rig_submit(r, LOOP("50", ""));
    sent_args = (struct sent_args){.index = rig_index(r, off, in_round(0, "next"))};
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, off), MR_OK);
    r->on_batch = look_for_args;
    uint64_t job = rig_submit(r, LOOP("50", ""));
    rig_done(r, a, job, in_round(0, "part-0"));
    rig_done(r, a, job, in_round(0, "part-1"));
    assert_int_equal(sent_args.count, 1);
    /* three tasks use the state: "done", and the two parts of the next round */
    assert_int_equal(sent_args.uses, MR_USES_OF_LOOP | 3);
}

/* A loop has run all its rounds, and its condition was never true. The explanation of the loop's
 * result says so. */
static void a_loop_without_an_end_is_explained(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a");
    uint64_t job = rig_submit(r, LOOP("2", ",\"y\":{\"op\":\"f\",\"args\":[1]}"));
    play(r, a, job, 0, GO);
    play_parts(r, a, job, 1);
    rig_done(r, a, job, "fit.s");
    rig_done(r, a, job, "y");
    struct mr_buf b;
    mr_buf_init(&b, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, "fit.s"), &b));
    mr_buf_add(&b, "", 1);
    assert_non_null(strstr(
        (const char *)b.p, "loop \"fit\" ended after all its 2 rounds, without \"until\"\n"));
    mr_buf_clear(&b);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, "y"), &b));
    mr_buf_add(&b, "", 1);
    /* The explanation of a task outside of loops names no loop. */
    assert_null(strstr((const char *)b.p, "loop"));
    mr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(what_a_condition_became_is_named),
        RIG_TEST(a_loop_whose_count_nobody_wants_ends_where_its_condition_says),
        RIG_TEST(a_failure_in_a_round_fails_the_results_of_its_loop),
        RIG_TEST(the_count_of_rounds_is_sent_as_an_argument),
        RIG_TEST(the_uses_of_a_state_include_its_loop),
        RIG_TEST(a_loop_without_an_end_is_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
