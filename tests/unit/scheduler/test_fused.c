/* The scheduler's core: fused tasks. The worker runs a chain of tasks as one fused run, and drops a
 * value of it as soon as the last consumer has used up the value. The tests check cases in which
 * such values are needed again. */
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
#define CHAIN                                                                                      \
    T("a", "f", "1", "")                                                                           \
    "," T("b", "f", R("a"), "") "," T("c", "f", R("b"), "") "," T("d", "f", R("c"), "")
#define DIAMOND                                                                                    \
    T("x", "f", "1", "")                                                                           \
    "," T("e", "f", R("x"), "") "," T("i", "f", R("x"), "") "," T("y", "f", R("e") "," R("i"), "")

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots};
    return rig_join(r, &spec);
}

/* Makes a worker and an operator that is known to be short, so that a whole chain is sent at
 * once. */
static struct rig *known(struct rig_worker *w)
{
    struct rig *r = rig_new();
    *w = join(r, "a", 1);
    uint64_t job = rig_submit(r, JOB(T("w", "f", "0", ""), "\"w\""));
    rig_done_as(r, *w, job, "w", 1, MR_OUTCOME_OK, (mr_object_id){0}, 4, 1000);
    rig_forget_rows(r);
    return r;
}

static void used_up(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    rig_done_as(r, w, job, key, rig_attempt(r, w, job, key), MR_OUTCOME_USED_UP, (mr_object_id){0},
        0, 1000);
}

static void the_end_of_a_chain_takes_what_was_used_up_along(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"d\""));
    assert_int_equal(rig_count(r, SAID_TASK, w, job, NULL), 4);
    used_up(r, w, job, "a");
    used_up(r, w, job, "b");
    used_up(r, w, job, "c");
    assert_int_equal(rig_state(r, job, "a"), MR_TASK_RUNNING);
    rig_done(r, w, job, "d");
    assert_int_equal(rig_state(r, job, "a"), MR_TASK_RELEASED);
    assert_int_equal(rig_state(r, job, "c"), MR_TASK_RELEASED);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_count(r, SAID_TASK, w, job, NULL), 4);
    assert_int_equal(rig_count(r, SAID_CANCEL, w, job, NULL), 0);
    assert_int_equal(rig_count(r, SAID_RELEASE, w, job, NULL), 0);
}

static void each_task_of_a_fused_unit_has_its_span(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"d\""));
    struct mr_sched_totals before, after;
    mr_sched_totals(r->s, &before);
    used_up(r, w, job, "a");
    used_up(r, w, job, "b");
    used_up(r, w, job, "c");
    rig_done(r, w, job, "d");
    mr_sched_totals(r->s, &after);
    assert_int_equal(after.tasks_done - before.tasks_done, 4);
}

static void a_diamond_is_released_with_its_end(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(DIAMOND, "\"y\""));
    used_up(r, w, job, "x");
    used_up(r, w, job, "e");
    used_up(r, w, job, "i");
    rig_done(r, w, job, "y");
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RELEASED);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_dead_worker_takes_the_whole_unit_along(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"d\""));
    used_up(r, w, job, "a");
    used_up(r, w, job, "b");
    rig_close(r, w);
    rig_pass(r, r->c.lease + MR_SECOND);
    struct rig_worker b = join(r, "b", 1);
    assert_int_equal(rig_attempt(r, b, job, "a"), 2);
    struct mr_sched_job_info info;
    struct mr_sched_totals t;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    mr_sched_totals(r->s, &t);
    assert_int_equal(info.recomputed, 2); /* "a" and "b" had run before the worker died */
    assert_int_equal(t.recomputed, 2);
    for (const char *key = "abcd"; *key; key++)
        rig_done(r, b, job, (const char[]){*key, 0});
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_failure_in_a_unit_names_its_own_key(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"d\""));
    used_up(r, w, job, "a");
    rig_done(r, w, job, "b");
    rig_end(r, w, job, "c", MR_OUTCOME_ERROR);
    struct mr_sched_task_info info = rig_task(r, job, "c");
    assert_int_equal(info.state, MR_TASK_ERRED);
    assert_true(info.has_error);
    assert_int_equal(rig_state(r, job, "a"), MR_TASK_RELEASED);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

static void what_a_consumer_used_up_is_made_again_with_it(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"d\""));
    used_up(r, w, job, "a");
    used_up(r, w, job, "b");
    /* Task c fails, for example because its value found no room. */
    rig_end(r, w, job, "c", MR_OUTCOME_RETURNED);
    rig_heartbeat(r, w);
    assert_int_equal(rig_attempt(r, w, job, "a"), 2);
    assert_int_equal(rig_attempt(r, w, job, "b"), 2);
    assert_int_equal(rig_attempt(r, w, job, "c"), 2);
    for (const char *key = "abcd"; *key; key++)
        rig_done(r, w, job, (const char[]){*key, 0});
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_job_that_joins_a_key_has_it_made_again(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t one = rig_submit(r, "{\"namespace\":\"n\",\"tasks\":{" CHAIN "},\"targets\":[\"d\"]}");
    used_up(r, w, one, "a");
    uint64_t two = rig_submit(
        r, "{\"namespace\":\"n\",\"tasks\":{" T("a", "f", "1", "") "},\"targets\":[\"a\"]}");
    assert_int_equal(rig_attempt(r, w, one, "a"), 2);
    rig_done(r, w, one, "a");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    for (const char *key = "bcd"; *key; key++)
        rig_done(r, w, one, (const char[]){*key, 0});
    assert_int_equal(rig_job(r, one), MR_JOB_DONE);
}

/* Task "b" was the last user of the value of task "a", so the worker dropped the value of "a". When
 * "b" has to run again, the scheduler sends the value of "a" to the worker. */
static void what_is_made_again_is_sent_the_input_that_it_used_up(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t one = rig_submit(r,
        "{\"namespace\":\"ours\",\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1]},\"b\":{\"op\":\"f\","
        "\"args\":[{\"ref\":\"a\"}],\"priority\":-1},\"c\":{\"op\":\"f\",\"args\":[{\"ref\":\"b\"}]}},"
        "\"targets\":[\"c\"]}");
    rig_done(r, w, one, "a");
    assert_int_not_equal(rig_attempt(r, w, one, "b"), 0);
    /* The worker gives b back. The scheduler sends b again, now that a is done. */
    rig_tell(r, w, TOLD_GIVEN, one, "b");
    used_up(r, w, one, "b");
    rig_forget_rows(r);
    (void)rig_submit(r,
        "{\"namespace\":\"ours\",\"tasks\":{\"d\":{\"op\":\"f\",\"args\":[{\"ref\":\"b\"}]}},"
        "\"targets\":[\"d\"]}");
    assert_int_equal(rig_count(r, SAID_TASK, w, one, "b"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, w, one, "a"), 1);
}

/* Task "c" used up the value of "b", and "b" used up the value of "a". When "c" has to run again,
 * "b" runs again too, and the scheduler sends the value of "a" to the worker. */
static void what_a_used_up_user_had_used_up_is_sent_the_input_that_it_used_up(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t one = rig_submit(r,
        "{\"namespace\":\"ours\",\"tasks\":{\"a\":{\"op\":\"f\",\"args\":[1]},\"b\":{\"op\":\"f\","
        "\"args\":[{\"ref\":\"a\"}],\"priority\":-1},\"c\":{\"op\":\"f\",\"args\":[{\"ref\":\"b\"}]},"
        "\"d\":{\"op\":\"f\",\"args\":[{\"ref\":\"c\"}]}},\"targets\":[\"d\"]}");
    rig_done(r, w, one, "a");
    /* The worker gives b back. The scheduler sends b again, now that a is done. */
    rig_tell(r, w, TOLD_GIVEN, one, "b");
    used_up(r, w, one, "b");
    used_up(r, w, one, "c");
    rig_forget_rows(r);
    (void)rig_submit(r,
        "{\"namespace\":\"ours\",\"tasks\":{\"e\":{\"op\":\"f\",\"args\":[{\"ref\":\"c\"}]}},"
        "\"targets\":[\"e\"]}");
    assert_int_equal(rig_count(r, SAID_TASK, w, one, "b"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, w, one, "a"), 1);
}

static void a_target_that_was_used_up_runs_again(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"b\",\"d\""));
    /* A worker must not use up a target. If a worker does so nevertheless, the target runs again.
     */
    used_up(r, w, job, "b");
    assert_int_equal(rig_attempt(r, w, job, "b"), 2);
}

static void the_answer_to_a_steal_of_what_was_used_up_changes_nothing(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"d\""));
    used_up(r, w, job, "a");
    rig_tell(r, w, TOLD_UNKNOWN, job, "a");
    assert_int_equal(rig_attempt(r, w, job, "a"), 1);
    assert_int_equal(rig_state(r, job, "a"), MR_TASK_RUNNING);
}

static void a_worker_that_returns_with_the_end_of_a_unit_has_all_of_it(void **state)
{
    (void)state;
    struct rig_worker w;
    struct rig *r = known(&w);
    uint64_t job = rig_submit(r, JOB(CHAIN, "\"d\""));
    used_up(r, w, job, "a");
    used_up(r, w, job, "b");
    rig_close(r, w);
    const uint32_t index = rig_index(r, job, "c"), attempt = 1, bytes = 1, queued = index + 1;
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    const struct mr_ws_register more = {.incarnation = w.incarnation,
        .epoch = r->c.epoch,
        .holding = {.tasks = {&run, 1, &index, &attempt, 1},
            .inline_bytes = &bytes,
            .inlined = MR_STR_INIT("\x01")},
        .queued = {&run, 1, &queued, &attempt, 1}};
    const struct rig_spec spec = {.name = "a", .node = "a", .slots = 1};
    w = rig_join_as(r, &spec, &more);
    assert_int_equal(rig_state(r, job, "a"), MR_TASK_RELEASED);
    assert_int_equal(rig_state(r, job, "b"), MR_TASK_RELEASED);
    assert_int_equal(rig_state(r, job, "c"), MR_TASK_DONE);
    rig_done(r, w, job, "d");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_end_of_a_chain_takes_what_was_used_up_along),
        RIG_TEST(each_task_of_a_fused_unit_has_its_span),
        RIG_TEST(a_diamond_is_released_with_its_end),
        RIG_TEST(a_dead_worker_takes_the_whole_unit_along),
        RIG_TEST(a_failure_in_a_unit_names_its_own_key),
        RIG_TEST(what_a_consumer_used_up_is_made_again_with_it),
        RIG_TEST(a_job_that_joins_a_key_has_it_made_again),
        RIG_TEST(what_a_used_up_user_had_used_up_is_sent_the_input_that_it_used_up),
        RIG_TEST(a_target_that_was_used_up_runs_again),
        RIG_TEST(the_answer_to_a_steal_of_what_was_used_up_changes_nothing),
        RIG_TEST(a_worker_that_returns_with_the_end_of_a_unit_has_all_of_it),
        RIG_TEST(what_is_made_again_is_sent_the_input_that_it_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
