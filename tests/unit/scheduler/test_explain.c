/* The scheduler's core: the exact sentences that explain why a task ran, runs, waits or will never
 * run. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots};
    return rig_join(r, &spec);
}

static void assert_says(struct rig *r, uint64_t job, const char *key, const char *expected)
{
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, key), &lines));
    mr_buf_add(&lines, "", 1);
    assert_string_equal((const char *)lines.p, expected);
    mr_buf_fini(&lines);
}

static void a_task_without_a_worker_says_what_is_missing(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(
        r, JOB(T("x", "rare", "1", "") "," T("g", "f", "2", ",\"resources\":{\"gpu\":2.5}") "," T(
                   "n", "f", "3", ",\"workers\":[\"one\",\"two\"]"),
               "\"x\",\"g\",\"n\""));
    assert_says(r, job, "x",
        "\"x\" is ready and waits for a worker\nno worker is connected\n"
        "no worker that may run it has room now\n");
    struct rig_worker w = join(r, "w", 4);
    (void)w;
    assert_says(r, job, "x",
        "\"x\" is ready and waits for a worker\nno worker offers the op \"rare\"\n"
        "no worker that may run it has room now\n");
    assert_says(r, job, "g",
        "\"g\" is ready and waits for a worker\n"
        "it asks for 2.5 of the resource \"gpu\", and no worker has more than 0\n"
        "no worker that may run it has room now\n");
    assert_says(r, job, "n",
        "\"n\" is ready and waits for a worker\nit may run on \"one\" only\n"
        "it may run on \"two\" only\nno worker that may run it has room now\n");
    const struct rig_spec gpu = {.name = "g", .slots = 1, .resource = "gpu", .amount = 2};
    (void)rig_join(r, &gpu);
    assert_says(r, job, "g",
        "\"g\" is ready and waits for a worker\n"
        "it asks for 2.5 of the resource \"gpu\", and no worker has more than 2\n"
        "no worker that may run it has room now\n");
}

static void a_task_that_runs_or_waits_says_where_and_for_what(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1);
    uint64_t job = rig_submit(r, JOB(T("a", "f", "1", "") "," T("b", "g", R("a"), "") "," T(
                                         "c", "f", "2", "") "," T("z", "h", R("b") "," R("c"), ""),
                                     "\"z\""));
    assert_says(r, job, "a", "\"a\" was sent to \"w\" and runs there or is about to\n");
    rig_tell(r, w, TOLD_STARTED, job, "a");
    assert_says(r, job, "a", "\"a\" was sent to \"w\" and runs there\n");
    assert_says(r, job, "z",
        "\"z\" waits for \"b\", which waits\nit waits for \"c\" too, which is ready\n");
    assert_says(r, job, "b", "\"b\" waits for \"a\", which runs\n");
    assert_says(r, job, "c",
        "\"c\" is ready and waits for a worker\nno worker that may run it has room now\n");
    rig_done(r, w, job, "a");
    rig_done(r, w, job, "b");
    assert_says(r, job, "z",
        "\"z\" waits for \"c\", which runs\n"
        "it was sent to \"w\" already, and starts there when its inputs arrive\n");
    assert_says(r, job, "a",
        "\"a\" ran, and nobody needs its value any more\n"
        "the target \"z\" needs it, through \"b\"\n");
    assert_says(r, job, "b", "\"b\" ran\nthe target \"z\" needs it, through \"z\"\n");
    rig_done(r, w, job, "c");
    rig_done(r, w, job, "z");
    assert_says(r, job, "z", "\"z\" ran\nit is a target of the job\n");
}

#define MIB ((uint64_t)1 << 20)

static void a_task_that_waits_for_memory_says_so(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->store_memory = 4 * MIB;
    rig_store(r, 0x51, "a");
    const struct rig_spec spec = {.name = "w", .node = "w", .slots = 2, .store = 0x51};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "0", "") "," T("b", "g", "1", ""), "\"x\",\"b\""));
    /* Operator f is known to make values of 3.5 MiB; the store has 4 MiB. */
    r->object_bytes = 7 * MIB / 2;
    (void)rig_done_object(r, w, job, "x");
    uint64_t more = rig_submit(r, JOB(T("y", "f", "2", ""), "\"y\""));
    assert_says(r, more, "y",
        "\"y\" is ready and waits for a worker\n"
        "workers have room for it, but their memory is nearly full: it waits until values are "
        "released, or until a worker runs nothing else\n");
    rig_done(r, w, job, "b");
    assert_says(r, more, "y", "\"y\" was sent to \"w\" and runs there or is about to\n");
}

static void what_waits_for_many_names_some(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(
        r, JOB(T("z", "h", "{\"each\":{\"ref\":\"p-${i}\"},\"for\":{\"i\":11}}",
                   "") ","
                       "\"p-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":11}}",
               "\"z\""));
    char text[2048];
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_true(mr_sched_explain(r->s, (mr_job_id){job}, rig_index(r, job, "z"), &lines));
    (void)snprintf(text, sizeof text, "%.*s", (int)lines.n, (char *)lines.p);
    mr_buf_fini(&lines);
    uint32_t named = 0;
    for (const char *at = text; (at = strstr(at, "too, which is ready\n")); at++)
        named++;
    assert_int_equal(named, 7);
    assert_non_null(strstr(text, "\"z\" waits for \"p-0\", which is ready\n"));
    assert_non_null(strstr(text, "and for 3 more inputs\n"));
}

static void what_failed_says_why_and_what_fell_says_by_what(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8);
    uint64_t job = rig_submit(
        r, "{\"on_error\":\"continue\",\"tasks\":{" T("a", "f", "1", ",\"retries\":1") "," T(
               "b", "g", "2", "") "," T("m", "h", R("a") "," R("b"), "") "," T("z", "h", R("m"),
               "") "," T("o", "f", "3", "") "},\"targets\":[\"z\",\"o\",\"b\"]}");
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    assert_says(r, job, "a",
        "\"a\" failed: it went wrong\nit was sent to workers 2 times\n"
        "the last attempt was on \"w\"\n");
    rig_end(r, w, job, "b", MR_OUTCOME_ERROR);
    assert_says(r, job, "b", "\"b\" failed: it went wrong\nthe last attempt was on \"w\"\n");
    assert_says(r, job, "m",
        "\"m\" never ran: something that it needs failed\nits input \"b\" failed\n"
        "it needs \"a\", which failed: it went wrong\n");
    assert_says(r, job, "z",
        "\"z\" never ran: something that it needs failed\nits input \"m\" failed\n"
        "it needs \"a\", which failed: it went wrong\n");
}

static void what_never_runs_says_what_ended_the_job(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8);
    static const char two[] = JOB(T("x", "f", "1", "") "," T("y", "g", "2", ""), "\"x\",\"y\"");
    uint64_t job = rig_submit(r, two);
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    assert_says(
        r, job, "y", "\"y\" will not run: the job ended when \"x\" failed: it went wrong\n");
    job = rig_submit(r, two);
    struct mr_sched_event ev = {
        .type = MR_SCHED_CANCEL, .job = {job}, .ticket = 99, .text = MR_STR("enough")};
    rig_step(r, &ev);
    rig_turn(r);
    assert_says(r, job, "y", "\"y\" will not run: the job was cancelled: enough\n");
    job = rig_submit(r, two);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_says(r, job, "y", "\"y\" will not run: the job was cancelled: cancelled on request\n");
    job = rig_submit(
        r, "{\"deadline_s\":1,\"tasks\":{" T("x", "f", "1", "") "},\"targets\":[\"x\"]}");
    rig_pass(r, 2 * MR_SECOND);
    assert_says(r, job, "x",
        "\"x\" will not run: the job has ended: the job's deadline (deadline_s) has passed\n");
}

static void what_was_given_or_came_again_says_so(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 8);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":2"), "\"x\""));
    rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
    rig_done(r, w, job, "x");
    assert_says(
        r, job, "x", "\"x\" ran\nit was sent to workers 2 times\nit is a target of the job\n");
    const struct mr_sched_resolved there = {.index = 1, .object = {7, 7}, .bytes = 1000};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    uint64_t two = rig_submit_with(r,
        JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ",\"persist\":\"name\""), "\"y\""), &more);
    assert_says(r, two, "y",
        "\"y\" did not run: its result was there already, under its name\n"
        "it is a target of the job\n");
    assert_says(r, two, "x",
        "\"x\" is not needed: what needs it has its value\n"
        "the target \"y\" needs it, through \"y\"\n");
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_false(mr_sched_explain(r->s, (mr_job_id){job + 100}, 0, &lines));
    mr_buf_fini(&lines);
}

/* The run time of the operator is known, so its tasks wait in the queue that all tasks share. */
static void what_waits_behind_others_says_how_many(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 1);
    uint64_t warm = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_done_as(r, w, warm, "x", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, MR_SECOND);
    uint64_t job = rig_submit(
        r, "{\"tasks\":{\"p-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":5}}}}");
    assert_says(r, job, "p-4",
        "\"p-4\" is ready and waits for a worker\n"
        "3 tasks of its job are ready, and those before it go first\n");
}

/* While the run time of an operator is not known, at most 256 of its tasks wait in a list of their
 * own, so that tasks of other operators may go first. Further tasks wait in the queue. */
static void of_an_unknown_op_256_tasks_wait_apart(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    (void)join(r, "w", 1);
    uint64_t job = rig_submit(
        r, "{\"tasks\":{\"p-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":300}}}}");
    assert_says(r, job, "p-256",
        "\"p-256\" is ready and waits for a worker\nno worker that may run it has room now\n");
    assert_says(r, job, "p-257",
        "\"p-257\" is ready and waits for a worker\n"
        "43 tasks of its job are ready, and those before it go first\n");
}

/* The scheduler keeps the error texts of the latest failures only. */
static void what_failed_long_ago_has_no_reason_any_more(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.failures_max = 2;
    struct rig *r = rig_new_with(&c);
    struct rig_worker w = join(r, "w", 16);
    uint64_t job =
        rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{" T("a", "f", "1", "") "," T(
                          "s", "g", "1", "") "," T("t", "g", R("s") "," R("a"), "") "," T("b", "f",
                          "2", "") "," T("c", "f", "3", "") "," T("o", "f", "4", "") "," T("k", "f",
                          "5", "") "},\"targets\":[\"t\",\"b\",\"c\",\"o\",\"k\"]}");
    /* The first failure is the job's error, so its text is kept. */
    rig_end(r, w, job, "b", MR_OUTCOME_ERROR);
    rig_end(r, w, job, "a", MR_OUTCOME_ERROR);
    assert_says(r, job, "s",
        "\"s\" was stopped: what needs it failed\n"
        "\"t\" needs it, and failed: it went wrong\n");
    rig_end(r, w, job, "c", MR_OUTCOME_ERROR);
    rig_end(r, w, job, "o", MR_OUTCOME_ERROR);
    assert_says(r, job, "a",
        "\"a\" failed; its error text is no longer kept, since the job has many failures\n");
    assert_says(r, job, "t",
        "\"t\" never ran: something that it needs failed\nit needs \"a\", which failed\n");
    assert_says(
        r, job, "s", "\"s\" was stopped: what needs it failed\n\"t\" needs it, and failed\n");
    assert_true(rig_task(r, job, "t").cause == rig_index(r, job, "a"));
    assert_int_equal(rig_task(r, job, "t").cause_error.message.n, 0);
}

/* If many inputs of a task have failed, the explanation lists the first eight failed inputs. */
static void what_fell_with_many_names_some(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = join(r, "w", 16);
    uint64_t job = rig_submit(r,
        "{\"on_error\":\"continue\",\"tasks\":{\"z\":{\"op\":\"h\",\"args\":[{\"each\":{\"ref\":"
        "\"p-${i}\"},\"for\":{\"i\":10}}]},\"p-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":"
        "{\"i\":10}},\"o\":{\"op\":\"g\"}},\"targets\":[\"z\",\"o\",\"p-0\",\"p-1\",\"p-2\","
        "\"p-3\",\"p-4\",\"p-5\",\"p-6\",\"p-7\",\"p-8\",\"p-9\"]}");
    for (int i = 0; i < 10; i++) /* "p-3" fails first, so it is named as the cause */
        rig_end(
            r, w, job, (const char[]){'p', '-', (char)('0' + (i + 3) % 10), 0}, MR_OUTCOME_ERROR);
    char text[2048];
    size_t at =
        (size_t)snprintf(text, sizeof text, "\"z\" never ran: something that it needs failed\n");
    for (int i = 0; i < 8; i++)
        if (i != 3)
            at += (size_t)snprintf(text + at, sizeof text - at, "its input \"p-%d\" failed\n", i);
    (void)snprintf(text + at, sizeof text - at, "it needs \"p-3\", which failed: it went wrong\n");
    assert_says(r, job, "z", text);
}

static void a_given_value_is_no_task(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"x\":{\"value\":1}," T("y", "f", R("x"), "") "},\"targets\":[\"y\",\"x\"]}");
    assert_says(r, job, "x",
        "\"x\" is no task: its value was given with the job\nit is a target of the job\n");
    struct mr_buf lines;
    mr_buf_init(&lines, 1 << 16);
    assert_false(mr_sched_explain(r->s, (mr_job_id){job}, 2, &lines));
    assert_false(mr_sched_explain(r->s, (mr_job_id){job + 1}, 0, &lines));
    mr_buf_fini(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_without_a_worker_says_what_is_missing),
        RIG_TEST(a_task_that_runs_or_waits_says_where_and_for_what),
        RIG_TEST(a_task_that_waits_for_memory_says_so),
        RIG_TEST(what_waits_for_many_names_some),
        RIG_TEST(what_failed_says_why_and_what_fell_says_by_what),
        RIG_TEST(what_never_runs_says_what_ended_the_job),
        RIG_TEST(what_waits_behind_others_says_how_many),
        RIG_TEST(of_an_unknown_op_256_tasks_wait_apart),
        RIG_TEST(what_failed_long_ago_has_no_reason_any_more),
        RIG_TEST(what_fell_with_many_names_some),
        RIG_TEST(what_was_given_or_came_again_says_so),
        RIG_TEST(a_given_value_is_no_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
