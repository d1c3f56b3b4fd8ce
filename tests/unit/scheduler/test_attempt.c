/* The scheduler's core: attempts, and how tasks and jobs end. */
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

static void a_failed_task_is_tried_as_often_as_it_says(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":2"), "\"x\""));
    rig_end(r, a, job, "x", MR_OUTCOME_ERROR);
    rig_end(r, a, job, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RUNNING);
    rig_end(r, a, job, "x", MR_OUTCOME_ERROR);
    struct mr_sched_task_info info = rig_task(r, job, "x");
    assert_int_equal(info.state, MR_TASK_ERRED);
    assert_int_equal(info.attempt, 3);
    assert_true(info.has_error);
    assert_string_equal(info.error.message.p, "it went wrong");
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

static void a_bad_argument_is_not_tried_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":2"), "\"x\""));
    rig_end(r, a, job, "x", MR_OUTCOME_BAD_ARGUMENT);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

static void a_timeout_travels_with_the_task_and_costs_a_try(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":1,\"timeout_s\":0.5"), "\"x\""));
    assert_int_equal(rig_row(r, SAID_TASK, job, "x")->timeout_ns, 500 * MR_MS);
    rig_end(r, a, job, "x", MR_OUTCOME_TIMEOUT);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    rig_end(r, a, job, "x", MR_OUTCOME_TIMEOUT);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

static void a_returned_task_costs_no_try(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    for (int i = 0; i < 3; i++) {
        rig_end(r, a, job, "x", MR_OUTCOME_RETURNED);
        rig_heartbeat(r, a);
    }
    assert_int_equal(rig_attempt(r, a, job, "x"), 4);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* Checks invariant I2 of docs/invariants.md. */
static void the_first_completion_counts_whatever_its_attempt(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    /* The worker reports x as unknown, although it runs x. */
    rig_tell(r, a, TOLD_UNKNOWN, job, "x");
    struct rig_worker b = join(r, "b", 1);
    struct rig_worker second = rig_attempt(r, b, job, "x") ? b : a;
    assert_int_equal(rig_attempt(r, second, job, "x"), 2);
    rig_done_as(r, a, job, "x", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, MR_MS);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    assert_int_equal(rig_count(r, SAID_CANCEL, second, job, "x"), 1);
    rig_done_as(r, second, job, "x", 2, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, MR_MS);
    assert_int_equal(rig_count(r, SAID_RELEASE, second, job, "x"), 1);
    char bytes[64];
    assert_int_equal(rig_value(r, job, "x", bytes).kind, MR_SCHED_VALUE_INLINE);
}

static void an_object_of_an_older_attempt_does_not_count_where_a_later_one_was_sent(void **state)
{
    (void)state;
    /* When the worker is sent attempt 2, it drops the object of attempt 1. */
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), 0);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), 0);
    rig_turn(r);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    rig_done_as(r, a, job, "x", 1, MR_OUTCOME_OK, (mr_object_id){7, 1}, 0, MR_MS);
    assert_int_equal(rig_count(r, SAID_RELEASE, a, job, "x"), 1);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RUNNING);
    rig_done_as(r, a, job, "x", 2, MR_OUTCOME_OK, (mr_object_id){7, 2}, 0, MR_MS);
    char bytes[64];
    assert_int_equal(rig_value(r, job, "x", bytes).object.number, 2);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* Checks invariant I3 of docs/invariants.md. */
static void a_failure_of_an_old_attempt_is_nobodys(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"retries\":5"), "\"x\""));
    rig_tell(r, a, TOLD_UNKNOWN, job, "x");
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    rig_done_as(r, a, job, "x", 1, MR_OUTCOME_ERROR, (mr_object_id){0, 0}, 0, MR_MS);
    rig_done_as(r, a, job, "x", 9, MR_OUTCOME_ERROR, (mr_object_id){0, 0}, 0, MR_MS);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RUNNING);
    assert_int_equal(rig_task(r, job, "x").retries_left, 5);
}

static void a_revoked_worker_is_not_listened_to(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    rig_close(r, a);
    rig_pass(r, r->c.lease + MR_MS);
    rig_done_as(r, a, job, "x", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, MR_MS);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_READY);
    const struct mr_ws_register more = {.incarnation = a.incarnation, .epoch = 1};
    const struct rig_spec spec = {.name = "a"};
    (void)rig_join_as(r, &spec, &more);
    assert_true(r->last.was_refused);
}

static void crash(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = rig_index(r, job, key), attempt = rig_sent(r, w, job, index);
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w.slot, .incarnation = w.incarnation};
    ev.refs = (struct mr_ws_refs){&run, 1, &index, &attempt, 1};
    rig_step(r, &ev);
    rig_turn(r);
}

static void a_task_that_kills_three_workers_is_convicted_alone(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 2);
    uint64_t job =
        rig_submit(r, "{\"on_error\":\"continue\",\"tasks\":{" T("bad", "f", "1", "") "," T(
                          "good", "g", "2", "") "},\"targets\":[\"bad\",\"good\"]}");
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 2);
    for (int i = 0; i < 3; i++) {
        crash(r, a, job, "bad");
        if (i == 2) break;
        a = join(r, "a", 2);
        if (!rig_attempt(r, a, job, "bad") || rig_state(r, job, "bad") != MR_TASK_RUNNING)
            /* The suspect runs only on a worker without other tasks. */
            rig_done(r, a, job, "good");
        assert_int_equal(rig_state(r, job, "bad"), MR_TASK_RUNNING);
        assert_true(rig_row(r, SAID_TASK, job, "bad")->alone);
    }
    assert_int_equal(rig_state(r, job, "bad"), MR_TASK_ERRED);
    a = join(r, "a", 2);
    if (rig_state(r, job, "good") != MR_TASK_DONE) rig_done(r, a, job, "good");
    assert_int_equal(rig_state(r, job, "good"), MR_TASK_DONE);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

static void an_error_stops_the_job_unless_it_is_to_continue(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 4);
    static const char tasks[] = "\"tasks\":{" T("x", "f", "1", "") "," T("y", "g", "2", "") "," T(
        "z", "h", R("x"), "") "},\"targets\":[\"y\",\"z\"]}";
    char stop[400], go_on[400];
    (void)snprintf(stop, sizeof stop, "{%s", tasks);
    (void)snprintf(go_on, sizeof go_on, "{\"on_error\":\"continue\",%s", tasks);
    uint64_t one = rig_submit(r, stop), two = rig_submit(r, go_on);
    rig_end(r, a, one, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, one), MR_JOB_FAILED);
    assert_int_equal(rig_count(r, SAID_CANCEL, a, one, "y"), 1);
    if (!rig_attempt(r, a, two, "x")) rig_turn(r);
    rig_end(r, a, two, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, two), MR_JOB_RUNNING);
    assert_int_equal(rig_state(r, two, "z"), MR_TASK_ERRED);
    rig_done(r, a, two, "y");
    assert_int_equal(rig_job(r, two), MR_JOB_FAILED);
    assert_int_equal(rig_state(r, two, "y"), MR_TASK_DONE);
}

static void a_job_past_its_deadline_fails(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(
        r, "{\"deadline_s\":1,\"tasks\":{" T("x", "f", "1", "") "},\"targets\":[\"x\"]}");
    rig_pass(r, MR_SECOND / 2);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    rig_pass(r, MR_SECOND);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_int_equal(rig_count(r, SAID_CANCEL, a, job, "x"), 1);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.error.code, 4);
}

static void cancelling_stops_what_runs_and_retrying_takes_it_up_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", R("x"), ""), "\"y\""));
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_CANCELLED);
    assert_int_equal(rig_count(r, SAID_CANCEL, a, job, "x"), 1);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_CANCELLED);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    rig_done(r, a, job, "x");
    rig_done(r, a, job, "y");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    /* the job is done already, so the retry has nothing to do */
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
}

/* The retry comes before the core has worked through the tasks of the cancelled job. */
static void a_job_that_is_retried_at_once_begins_as_if_it_had_rested(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 2);
    uint64_t job = rig_submit(r,
        JOB(T("w", "f", "1", "") "," T("x", "f", R("w"), "") "," T("y", "f", R("x"), ""), "\"y\""));
    rig_done(r, a, job, "w");
    struct mr_sched_event ev = {.type = MR_SCHED_CANCEL, .job = {job}, .ticket = ++r->ticket};
    rig_step(r, &ev);
    assert_int_equal(r->code, MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    assert_int_equal(rig_count(r, SAID_CANCEL, a, job, "x"), 1);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    rig_done(r, a, job, "y");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_value_is_released_when_nobody_needs_it_any_more(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 2);
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), "") "," T("z", "h", R("x"), ""),
               "\"y\",\"z\""));
    rig_done(r, a, job, "x");
    rig_done(r, a, job, "y");
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    rig_done(r, a, job, "z");
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RELEASED);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_DONE);
    assert_int_equal(rig_count(r, SAID_RELEASE, a, job, "x"), 1);
}

static void what_was_sent_as_its_last_use_is_dropped_without_asking(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
    /* The operator of y is not known to be short, so y is not sent ahead of x. */
    rig_done(r, a, job, "x");
    rig_done(r, a, job, "y");
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RELEASED);
    assert_int_equal(rig_count(r, SAID_RELEASE, a, job, "x"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_failed_task_is_tried_as_often_as_it_says),
        RIG_TEST(a_bad_argument_is_not_tried_again),
        RIG_TEST(a_timeout_travels_with_the_task_and_costs_a_try),
        RIG_TEST(a_returned_task_costs_no_try),
        RIG_TEST(the_first_completion_counts_whatever_its_attempt),
        RIG_TEST(an_object_of_an_older_attempt_does_not_count_where_a_later_one_was_sent),
        RIG_TEST(a_failure_of_an_old_attempt_is_nobodys),
        RIG_TEST(a_revoked_worker_is_not_listened_to),
        RIG_TEST(a_task_that_kills_three_workers_is_convicted_alone),
        RIG_TEST(an_error_stops_the_job_unless_it_is_to_continue),
        RIG_TEST(a_job_past_its_deadline_fails),
        RIG_TEST(cancelling_stops_what_runs_and_retrying_takes_it_up_again),
        RIG_TEST(a_job_that_is_retried_at_once_begins_as_if_it_had_rested),
        RIG_TEST(a_value_is_released_when_nobody_needs_it_any_more),
        RIG_TEST(what_was_sent_as_its_last_use_is_dropped_without_asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
