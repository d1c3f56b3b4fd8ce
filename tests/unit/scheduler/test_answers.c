/* The scheduler's core: Cancel, Retry and Forget are answered when the journal has them. A client
 * that got no answer may ask again. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define UNANSWERED 1

static const char one_task[] =
    "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]}},\"targets\":[\"x\"]}";

static uint64_t running(struct rig *r)
{
    uint64_t job = rig_submit(r, one_task);
    assert_int_not_equal(job, 0);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    return job;
}

static struct rig *with_worker(struct rig_worker *w)
{
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 4};
    *w = rig_join(r, &spec);
    return r;
}

static void a_cancel_is_answered_when_the_journal_has_it(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    r->acks = false;
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), UNANSWERED);
    /* Until the journal has the cancel, clients see the job running. */
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    rig_ack(r);
    assert_int_equal(r->code, MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_CANCELLED);
}

static void a_cancel_asked_for_again_waits_too_and_both_are_answered(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    r->acks = false;
    uint32_t before = rig_notes(r, MR_NOTE_REPLY, job);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), UNANSWERED);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), UNANSWERED);
    rig_ack(r);
    assert_int_equal(rig_notes(r, MR_NOTE_REPLY, job) - before, 2);
}

static void a_cancel_and_a_forget_after_it_are_both_answered(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    rig_done(r, w, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    r->acks = false;
    uint32_t before = rig_notes(r, MR_NOTE_REPLY, job);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), UNANSWERED);
    rig_ack(r);
    assert_int_equal(rig_notes(r, MR_NOTE_REPLY, job) - before, 2);
    assert_int_equal(r->code, MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_NONE);
}

static void an_answered_cancel_holds_after_a_crash(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_CANCELLED);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
}

static void a_crash_before_the_answer_may_forget_the_cancel_and_asking_again_does_it(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    r->acks = false;
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), UNANSWERED);
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    r->acks = true;
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_CANCELLED);
}

static void a_forgotten_job_can_be_forgotten_again(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    /* A running job is not forgotten. */
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_ESTATE);
    rig_done(r, w, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    r->acks = false;
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), UNANSWERED);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), UNANSWERED);
    rig_ack(r);
    assert_int_equal(r->code, MR_OK);
    r->acks = true;
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_NONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_ENOENT);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job + 1), MR_ENOENT);
}

static void a_retry_asked_for_again_changes_nothing(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    /* A job that runs for the first time has nothing to retry. */
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_ESTATE);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    r->acks = false;
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), UNANSWERED);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), UNANSWERED);
    r->acks = true;
    rig_ack(r);
    assert_int_equal(r->code, MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    rig_compact(r); /* the next restart reads a snapshot */
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
}

static void a_retried_job_that_is_done_needs_no_retry(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    uint64_t job = running(r);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    rig_done(r, w, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    uint64_t other = running(r);
    rig_done(r, w, other, "x");
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, other), MR_ESTATE);
}

static void callers_who_ask_without_end_are_refused_while_the_journal_is_away(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.tasks_max = 1024;
    struct rig *r = rig_new_with(&c);
    uint64_t job = rig_submit(r, one_task);
    r->acks = false;
    uint32_t asked = 0;
    while (rig_ask(r, MR_SCHED_CANCEL, job) == UNANSWERED)
        assert_true(++asked <= 512);
    assert_int_equal(r->code, MR_EAWAY);
    rig_ack(r);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
}

/* Checks that each failed key has its own error, and that each key that failed because an input
 * failed names the failed task as its cause. */
static void expect_causes(struct rig *r, uint64_t job)
{
    struct mr_sched_task_info a = rig_task(r, job, "a"), b = rig_task(r, job, "b");
    assert_true(a.has_error && b.has_error);
    assert_true(a.cause == MR_NODE_NONE && b.cause == MR_NODE_NONE);
    assert_memory_equal(a.error.message.p, "a broke", 7);
    assert_memory_equal(b.error.message.p, "b broke", 7);
    const char *const fell[][2] = {{"a1", "a"}, {"a2", "a"}, {"b1", "b"}};
    for (size_t i = 0; i < sizeof fell / sizeof *fell; i++) {
        struct mr_sched_task_info t = rig_task(r, job, fell[i][0]);
        assert_int_equal(t.state, MR_TASK_ERRED);
        assert_false(t.has_error);
        assert_int_equal(t.cause, rig_index(r, job, fell[i][1]));
        assert_memory_equal(
            t.cause_error.message.p, fell[i][1][0] == 'a' ? "a broke" : "b broke", 7);
    }
}

static void fail_with(struct rig *r, struct rig_worker w, uint64_t job, const char *key, char *why)
{
    uint32_t index = rig_index(r, job, key), attempt = rig_attempt(r, w, job, key);
    uint32_t outcome = MR_OUTCOME_ERROR;
    struct mr_ws_run run = {.job = {job}, .count = 1};
    struct mr_ws_failure f = {.code = 2, .message = mr_str(why)};
    struct mr_ws_up m = {0};
    m.completed.tasks = (struct mr_ws_refs){
        .runs = &run, .runs_count = 1, .index = &index, .attempt = &attempt, .count = 1};
    m.completed.outcome = &outcome;
    m.completed.failures = &f;
    m.completed.failures_count = 1;
    rig_message(r, w, &m);
}

static const char two_failures[] =
    "{\"on_error\":\"%s\",\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1]},"
    "\"b\":{\"op\":\"f\",\"args\":[2]},"
    "\"a1\":{\"op\":\"f\",\"args\":[{\"ref\":\"a\"}]},"
    "\"a2\":{\"op\":\"f\",\"args\":[{\"ref\":\"a1\"}]},"
    "\"b1\":{\"op\":\"f\",\"args\":[{\"ref\":\"b\"}]}},"
    "\"targets\":[\"a2\",\"b1\",\"a\",\"b\"]}";

static void every_key_has_its_own_error_and_what_fell_names_whose(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    char text[1024];
    (void)snprintf(text, sizeof text, two_failures, "continue");
    uint64_t job = rig_submit(r, text);
    fail_with(r, w, job, "b", "b broke");
    fail_with(r, w, job, "a", "a broke");
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    expect_causes(r, job);
    rig_crash(r); /* the same holds after a restart, from records and from a snapshot */
    expect_causes(r, job);
    rig_compact(r);
    rig_crash(r);
    expect_causes(r, job);
}

static void what_the_end_of_a_job_kept_from_running_names_the_task_that_ended_it(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = with_worker(&w);
    char text[1024];
    (void)snprintf(text, sizeof text, two_failures, "stop");
    uint64_t job = rig_submit(r, text);
    fail_with(r, w, job, "a", "a broke");
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    for (int life = 0; life < 2; life++) {
        struct mr_sched_task_info t = rig_task(r, job, "b1");
        assert_int_equal(t.state, MR_TASK_CANCELLED);
        assert_int_equal(t.cause, rig_index(r, job, "a"));
        assert_memory_equal(t.cause_error.message.p, "a broke", 7);
        rig_crash(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_cancel_is_answered_when_the_journal_has_it),
        RIG_TEST(a_cancel_asked_for_again_waits_too_and_both_are_answered),
        RIG_TEST(a_cancel_and_a_forget_after_it_are_both_answered),
        RIG_TEST(an_answered_cancel_holds_after_a_crash),
        RIG_TEST(a_crash_before_the_answer_may_forget_the_cancel_and_asking_again_does_it),
        RIG_TEST(a_forgotten_job_can_be_forgotten_again),
        RIG_TEST(a_retry_asked_for_again_changes_nothing),
        RIG_TEST(a_retried_job_that_is_done_needs_no_retry),
        RIG_TEST(callers_who_ask_without_end_are_refused_while_the_journal_is_away),
        RIG_TEST(every_key_has_its_own_error_and_what_fell_names_whose),
        RIG_TEST(what_the_end_of_a_job_kept_from_running_names_the_task_that_ended_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
