/* The scheduler's core: which task is sent to which worker, when, and in which order. */
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

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
    return rig_join(r, &spec);
}

static void a_task_goes_to_its_data(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "a");
    rig_store(r, 0x52, "b");
    struct rig_worker a = join(r, "a", 2, 0x51), b = join(r, "b", 2, 0x52);
    uint64_t job = rig_submit(
        r, JOB(T("small", "f", "1", ",\"workers\":[\"b\"]") "," T("large", "f", "2",
                   ",\"workers\":[\"a\"]") "," T("t", "g", R("small") "," R("large"), ""),
               "\"t\""));
    rig_done(r, b, job, "small");
    (void)rig_done_object(r, a, job, "large");
    assert_int_equal(rig_attempt(r, a, job, "t"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, "small"), 1);
}

static void a_small_value_is_not_worth_waiting_for(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    uint64_t job =
        rig_submit(r, JOB(T("p", "f", "1", ",\"workers\":[\"a\"]") "," T("q", "f", "2",
                              ",\"workers\":[\"b\"]") "," T("t", "g", R("p") "," R("q"), ""),
                          "\"t\""));
    rig_done(r, a, job, "p");
    (void)rig_submit(
        r, JOB(T("x", "f", "1", ",\"workers\":[\"a\"]") "," T("y", "f", "2",
                   ",\"workers\":[\"a\"]") "," T("z", "f", "3", ",\"workers\":[\"a\"]"),
               "\"x\",\"y\",\"z\""));
    rig_done(r, b, job, "q");
    assert_int_equal(rig_attempt(r, b, job, "t"), 1);
    assert_int_equal(rig_attempt(r, a, job, "t"), 0);
}

static void tasks_without_data_go_to_who_has_least_to_do(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 1);
    assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 1);
}

static void done_in(
    struct rig *r, struct rig_worker w, uint64_t job, const char *key, mr_duration took)
{
    const mr_object_id none = {0, 0};
    rig_done_as(r, w, job, key, rig_attempt(r, w, job, key), MR_OUTCOME_OK, none, 1, took);
}

/* Runs two jobs one after the other. True: the second ran at the same worker as the first. */
static bool stays(struct rig *r, struct rig_worker a, struct rig_worker b, mr_duration took)
{
    uint64_t first = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    struct rig_worker w = rig_attempt(r, a, first, "x") ? a : b;
    done_in(r, w, first, "x", took);
    uint64_t second = rig_submit(r, JOB(T("y", "f", "2", ""), "\"y\""));
    struct rig_worker v = rig_attempt(r, a, second, "y") ? a : b;
    done_in(r, v, second, "y", took);
    return v.slot == w.slot;
}

static void a_short_lone_task_goes_where_the_last_one_went(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    assert_true(stays(r, a, b, 10 * MR_US));
}

static void longer_lone_tasks_go_to_one_after_the_other(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    assert_false(stays(r, a, b, 10 * MR_MS));
}

static void an_unknown_op_is_sent_one_a_slot_until_one_is_done(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", "") "," T("z", "f", "3", ""),
                          "\"x\",\"y\",\"z\""));
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 1);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 3);
}

static void a_chain_is_sent_before_it_is_ready(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    rig_warm(r, a);
    uint64_t job = rig_submit(r,
        JOB(T("x", "f", "1", "") "," T("y", "f", R("x"), "") "," T("z", "f", R("y"), ""), "\"z\""));
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 3);
    assert_int_equal(rig_state(r, job, "z"), MR_TASK_WAITING);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_RUNNING);
    /* Worker a made the values itself. */
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, NULL), 0);
    rig_done(r, a, job, "y");
    rig_done(r, a, job, "z");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 3);
}

static void a_task_is_not_sent_ahead_of_inputs_made_in_two_places(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    rig_warm(r, a);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", ",\"workers\":[\"a\"]") "," T("y", "f", "2",
                              ",\"workers\":[\"b\"]") "," T("z", "g", R("x") "," R("y"), ""),
                          "\"z\""));
    assert_null(rig_row(r, SAID_TASK, job, "z"));
    rig_done(r, a, job, "x");
    /* Task x is done, and y will be made at worker b. */
    assert_int_equal(rig_attempt(r, b, job, "z"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 1);
    assert_int_equal(rig_state(r, job, "z"), MR_TASK_WAITING);
    rig_done(r, b, job, "y");
    assert_int_equal(rig_state(r, job, "z"), MR_TASK_RUNNING);
}

static void who_waits_for_a_returned_task_gets_its_value_from_elsewhere(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    rig_warm(r, a);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    struct rig_worker b = join(r, "b", 1, 0);
    rig_end(r, a, job, "x", MR_OUTCOME_RETURNED);
    assert_int_equal(rig_attempt(r, b, job, "x"), 2);
    rig_done(r, b, job, "x");
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, "x"), 1);
    rig_done(r, a, job, "y");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static struct rig_worker idle_thief(struct rig *r, struct rig_worker a, uint64_t *job)
{
    rig_warm(r, a);
    *job = rig_submit(r, JOB(T("t0", "f", "0", "") "," T("t1", "f", "1", "") "," T("t2", "f", "2",
                                 "") "," T("t3", "f", "3", "") "," T("t4", "f", "4", ""),
                             "\"t0\",\"t1\",\"t2\",\"t3\",\"t4\""));
    assert_int_equal(rig_count(r, SAID_TASK, a, *job, NULL), 5);
    return join(r, "b", 1, 0);
}

static void what_is_given_goes_to_the_idle_worker(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job = 0;
    struct rig_worker b = idle_thief(r, a, &job);
    /* The task that was sent last is stolen first. */
    assert_int_equal(rig_count(r, SAID_STEAL, a, job, "t4"), 1);
    assert_int_equal(rig_count(r, SAID_STEAL, a, job, "t0"), 0);
    rig_tell(r, a, TOLD_GIVEN, job, "t4");
    assert_int_equal(rig_attempt(r, b, job, "t4"), 2);
}

static void what_has_started_is_not_taken_away(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job = 0;
    struct rig_worker b = idle_thief(r, a, &job);
    rig_tell(r, a, TOLD_STARTED, job, "t4");
    rig_pass(r, MR_SECOND / 100);
    assert_int_equal(rig_count(r, SAID_STEAL, a, job, "t4"), 1);
    assert_int_equal(rig_attempt(r, b, job, "t4"), 0);
    rig_done(r, a, job, "t4");
    assert_int_equal(rig_state(r, job, "t4"), MR_TASK_DONE);
}

static void resources_that_nobody_has_are_waited_for(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "one", .slots = 4, .resource = "gpu", .amount = 1};
    const struct rig_spec two = {.name = "two", .slots = 4, .resource = "gpu", .amount = 2};
    struct rig_worker a = rig_join(r, &one);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", ",\"resources\":{\"gpu\":2}") "," T("y", "g", "2", ""),
                          "\"x\",\"y\""));
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_READY);
    /* Task x waits for a worker with two gpus and does not hold up y. */
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    struct rig_worker b = rig_join(r, &two);
    assert_int_equal(rig_attempt(r, b, job, "x"), 1);
}

static void no_worker_gets_more_than_twice_its_resources(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec one = {.name = "one", .slots = 8, .resource = "gpu", .amount = 1};
    struct rig_worker a = rig_join(r, &one);
    rig_warm(r, a);
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", ",\"resources\":{\"gpu\":1}") "," T("y", "f", "2",
                   ",\"resources\":{\"gpu\":1}") "," T("z", "f", "3", ",\"resources\":{\"gpu\":1}"),
               "\"x\",\"y\",\"z\""));
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 2);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 3);
}

static void a_task_for_named_workers_waits_for_one_of_them(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 4, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ",\"workers\":[\"b\"]") "," T("y", "g", "2",
                                         ",\"workers\":[\"b\"],\"allow_other_workers\":true"),
                                     "\"x\",\"y\""));
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_READY);
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    struct rig_worker b = join(r, "b", 4, 0);
    assert_int_equal(rig_attempt(r, b, job, "x"), 1);
}

#define LIKES_B ",\"workers\":[\"b\"],\"allow_other_workers\":true"

static void a_task_without_inputs_goes_to_the_worker_that_it_prefers(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0), c = join(r, "c", 1, 0);
    rig_warm(r, a);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", LIKES_B) "," T("y", "f", "2", LIKES_B), "\"x\",\"y\""));
    assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 2);
    uint64_t other = rig_submit(r, JOB(T("z", "f", "3", ""), "\"z\""));
    assert_int_equal(
        rig_count(r, SAID_TASK, a, other, "z") + rig_count(r, SAID_TASK, c, other, "z"), 1);
}

static void a_preference_for_a_full_worker_does_not_keep_a_task_waiting(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    uint64_t job = /* while the run time of the operator is unknown, each slot gets one task */
        rig_submit(r, JOB(T("x", "f", "1", LIKES_B) "," T("y", "f", "2", LIKES_B), "\"x\",\"y\""));
    assert_int_equal(rig_attempt(r, b, job, "x"), 1);
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
}

static void a_preference_is_worth_a_second_of_waiting(void **state)
{
    (void)state;
    const mr_duration took[] = {MR_SECOND / 2, 2 * MR_SECOND};
    for (int i = 0; i < 2; i++) {
        struct rig *r = rig_new();
        struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
        uint64_t job = rig_submit(r, JOB(T("x", "f", "1", LIKES_B), "\"x\""));
        done_in(r, b, job, "x", took[i]);
        job = rig_submit(
            r, JOB(T("y", "f", "2", LIKES_B) "," T("z", "f", "3", LIKES_B), "\"y\",\"z\""));
        assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 2 - i);
        assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), i);
        rig_pass(r, MR_SECOND / 100);
        assert_int_equal(rig_count(r, SAID_STEAL, b, job, NULL), 0);
        (void)rig_teardown(NULL);
    }
}

/* The preferred worker has neither the input nor the least load. */
static void a_task_with_inputs_goes_to_the_worker_that_it_prefers(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    (void)join(r, "c", 1, 0);
    rig_warm(r, a);
    (void)rig_submit(r, JOB(T("w", "f", "0", ",\"workers\":[\"b\"]"), "\"w\""));
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", ",\"workers\":[\"a\"]") "," T("y", "g", R("x"), LIKES_B), "\"y\""));
    /* Task y is not sent ahead to worker a, which makes its input. */
    assert_null(rig_row(r, SAID_TASK, job, "y"));
    rig_done(r, a, job, "x");
    assert_int_equal(rig_attempt(r, b, job, "y"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 1);
}

/* Of two workers that have inputs, the task goes to the one that it prefers, although the other has
 * more bytes of inputs. One input is long-running, so the task is not sent ahead of its inputs. */
static void a_named_worker_is_preferred_where_others_are_allowed(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 77, "a");
    rig_store(r, 78, "b");
    struct rig_worker a = join(r, "a", 2, 77), b = join(r, "b", 2, 78);
    for (int is_preferred = 0; is_preferred < 2; is_preferred++) {
        uint64_t job = rig_submit(r,
            is_preferred ? JOB(T("x", "long", "1", ",\"workers\":[\"a\"]") "," T("z", "f", "2",
                                   ",\"workers\":[\"b\"]") "," T("y", "f", R("x") "," R("z"),
                                   ",\"workers\":[\"b\"],\"allow_other_workers\":true"),
                               "\"y\"")
                         : JOB(T("x", "long", "1", ",\"workers\":[\"a\"]") "," T("z", "f", "2",
                                   ",\"workers\":[\"b\"]") "," T("y", "f", R("x") "," R("z"), ""),
                               "\"y\""));
        rig_done(r, b, job, "z");
        (void)rig_done_object(r, a, job, "x");
        struct rig_worker w = is_preferred ? b : a;
        assert_int_equal(rig_task(r, job, "y").worker, w.slot);
        rig_done(r, w, job, "y");
    }
}

static void a_task_is_sent_ahead_if_the_worker_that_it_prefers_is_away(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    rig_warm(r, a);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), LIKES_B), "\"y\""));
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_WAITING);
}

/* Each role of a training prefers a worker. Tasks ps and w0 have no input; w1 has one. */
static void what_runs_long_goes_to_the_worker_that_it_prefers(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    uint64_t data = rig_submit(r, JOB(T("x", "f", "1", ",\"workers\":[\"a\"]"), "\"x\""));
    rig_done(r, a, data, "x");
    (void)rig_submit(r, JOB(T("busy", "f", "2", ",\"workers\":[\"b\"]"), "\"busy\""));
    uint64_t job = rig_submit(
        r, JOB(T("x", "f", "1", ",\"workers\":[\"a\"]") "," T("ps", "long", "1", LIKES_B) "," T(
                   "w0", "long", "2", LIKES_B) "," T("w1", "long", R("x"), LIKES_B),
               "\"ps\",\"w0\",\"w1\""));
    assert_int_equal(rig_attempt(r, b, job, "ps"), 1);
    assert_int_equal(rig_attempt(r, b, job, "w0"), 1);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_attempt(r, b, job, "w1"), 1);
}

static void a_task_waits_for_a_worker_that_has_its_op(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 4, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "rare", "1", ""), "\"x\""));
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 0);
    const struct rig_spec spec = {.name = "b", .ops = "rare"};
    struct rig_worker b = rig_join(r, &spec);
    assert_int_equal(rig_attempt(r, b, job, "x"), 1);
}

static void the_more_urgent_goes_first(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = rig_submit(r, JOB(T("low", "f", "1", ",\"priority\":-1") "," T("mid", "f", "2",
                                         "") "," T("high", "f", "3", ",\"priority\":5"),
                                     "\"low\",\"mid\",\"high\""));
    uint64_t other = rig_submit(
        r, "{\"priority\":7,\"tasks\":{" T("now", "f", "9", "") "},\"targets\":[\"now\"]}");
    struct rig_worker a = join(r, "a", 1, 0);
    /* The time of the operator is unknown, so one task is sent. */
    assert_int_equal(rig_attempt(r, a, other, "now"), 1);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 0);
    rig_done(r, a, other, "now");
    const struct rig_row *high = rig_row(r, SAID_TASK, job, "high");
    const struct rig_row *mid = rig_row(r, SAID_TASK, job, "mid");
    const struct rig_row *low = rig_row(r, SAID_TASK, job, "low");
    assert_non_null(high);
    assert_true(high < mid && mid < low);
}

static void a_long_running_task_takes_no_slot(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job =
        rig_submit(r, JOB(T("x", "long", "1", "") "," T("y", "f", "2", "") "," T("z", "f", "3", ""),
                          "\"x\",\"y\",\"z\""));
    assert_int_equal(rig_attempt(r, a, job, "x"), 1);
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    assert_int_equal(rig_attempt(r, a, job, "z"), 0);
    rig_tell(r, a, TOLD_LEFT_SLOT, job, "y");
    assert_int_equal(rig_attempt(r, a, job, "z"), 1);
}

/* Long-running tasks are spread evenly over the workers and do not gather at one of them. */
static void what_runs_long_is_spread_over_the_workers(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const char *const names[] = {"a", "b", "c"};
    struct rig_worker w[3];
    for (int i = 0; i < 3; i++)
        w[i] = join(r, names[i], 1, 0);
    for (uint32_t round = 1; round <= 2; round++) {
        (void)rig_submit(r, "{\"tasks\":{\"x/${i}\":{\"op\":\"long\",\"args\":[\"${i}\"],"
                            "\"pure\":false,\"for\":{\"i\":6}}}}");
        for (int i = 0; i < 3; i++) {
            struct mr_sched_worker_info info;
            assert_true(mr_sched_worker(r->s, w[i].slot, &info));
            assert_int_equal(info.sent, 2 * round);
        }
    }
}

static void many_that_run_long_leave_places_to_the_more_urgent(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t many = rig_submit(r, "{\"tasks\":{\"x/${i}\":{\"op\":\"long\",\"args\":[\"${i}\"],"
                                  "\"pure\":false,\"for\":{\"i\":100}}}}");
    uint32_t sent = rig_count(r, SAID_TASK, a, many, NULL);
    assert_int_equal(sent, 48);
    uint64_t role =
        rig_submit(r, JOB(T("r", "long", "1", ",\"priority\":90,\"workers\":[\"a\"]"), "\"r\""));
    assert_int_equal(rig_attempt(r, a, role, "r"), 1);
    uint64_t other = rig_submit(r, JOB(T("y", "f", "2", ""), "\"y\""));
    assert_int_equal(rig_attempt(r, a, other, "y"), 1);
    assert_int_equal(rig_count(r, SAID_TASK, a, many, NULL), sent);
}

static void nothing_is_sent_while_the_journal_lags_and_the_core_does_not_spin(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.unacked_bytes_max = 200;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = join(r, "a", 1, 0), b = join(r, "b", 1, 0);
    rig_warm(r, a);
    r->acks = false;
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    rig_pass(r, MR_SECOND);
    assert_int_equal(
        rig_count(r, SAID_TASK, a, job, NULL) + rig_count(r, SAID_TASK, b, job, NULL), 0);
    assert_true(r->steps_work < 20);
    r->acks = true;
    rig_turn(r);
    assert_int_equal(
        rig_count(r, SAID_TASK, a, job, NULL) + rig_count(r, SAID_TASK, b, job, NULL), 2);
}

/* While the run time of `f` was unknown, its tasks waited in a list of their own. Tasks in that
 * list must not overtake queued tasks that free values. */
static void what_was_parked_does_not_overtake_what_lets_values_go(void **state)
{
    enum { ROOTS = 40 };
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "a");
    struct rig_worker a = join(r, "a", 1, 0x51);
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"x${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":40}},"
        "\"p${i}\":{\"op\":\"g\",\"args\":[{\"ref\":\"x${i}\"}],\"for\":{\"i\":40}},"
        "\"s\":{\"op\":\"g\",\"args\":[{\"each\":{\"ref\":\"p${i}\"},\"for\":{\"i\":40}}]}},"
        "\"targets\":[\"s\"]}");
    int made = 0, used = 0;
    /* Of the tasks that were sent, runs the one that comes first in the graph, as a worker does. */
    while (used < ROOTS) {
        char x[16], p[16];
        (void)snprintf(x, sizeof x, "x%d", made);
        (void)snprintf(p, sizeof p, "p%d", used);
        uint32_t at = used < made ? rig_attempt(r, a, job, p) : 0;
        if (at) {
            rig_done_as(r, a, job, p, at, MR_OUTCOME_OK, (mr_object_id){0}, 8, MR_SECOND);
            used++;
        } else {
            mr_object_id id = {7, (uint64_t)made + 1};
            at = rig_attempt(r, a, job, x);
            assert_int_not_equal(at, 0);
            rig_done_as(r, a, job, x, at, MR_OUTCOME_OK, id, 0, MR_SECOND);
            made++;
        }
        assert_true(made - used <= 2);
    }
}

/* A value is lost, and both tasks that need it are at the worker that has to make it again. They
 * fill the worker's queue, which must not keep the lost value's task away. */
static void what_runs_long_does_not_keep_a_lost_input_from_a_full_queue(void **state)
{
    (void)state;
    for (int with_long = 0; with_long < 2; with_long++) {
        struct mr_sched_config c;
        rig_config(&c);
        c.queue = 1;
        struct rig *r = rig_new_with(&c);
        rig_store(r, 0x51, "a");
        struct rig_worker w = join(r, "a", 1, 0x51);
        rig_warm(r, w);
        if (with_long) (void)rig_submit(r, JOB(T("l", "long", "1", ""), "\"l\""));
        uint64_t job = rig_submit(r,
            JOB(T("x", "f", "0", "") "," T("y", "g", R("x"), "") "," T("z", "g", R("x") ",1", ""),
                "\"y\",\"z\""));
        mr_object_id x = rig_done_object(r, w, job, "x");
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "y"), 1);
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "z"), 1);
        rig_forget_rows(r);
        rig_object_lost(r, 0x51, x);
        assert_int_equal(rig_state(r, job, "y"), MR_TASK_WAITING);
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "x"), 1);
        (void)rig_teardown(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_goes_to_its_data),
        RIG_TEST(a_small_value_is_not_worth_waiting_for),
        RIG_TEST(tasks_without_data_go_to_who_has_least_to_do),
        RIG_TEST(a_short_lone_task_goes_where_the_last_one_went),
        RIG_TEST(longer_lone_tasks_go_to_one_after_the_other),
        RIG_TEST(an_unknown_op_is_sent_one_a_slot_until_one_is_done),
        RIG_TEST(a_chain_is_sent_before_it_is_ready),
        RIG_TEST(a_task_is_not_sent_ahead_of_inputs_made_in_two_places),
        RIG_TEST(who_waits_for_a_returned_task_gets_its_value_from_elsewhere),
        RIG_TEST(what_is_given_goes_to_the_idle_worker),
        RIG_TEST(what_has_started_is_not_taken_away),
        RIG_TEST(resources_that_nobody_has_are_waited_for),
        RIG_TEST(no_worker_gets_more_than_twice_its_resources),
        RIG_TEST(a_task_for_named_workers_waits_for_one_of_them),
        RIG_TEST(a_task_without_inputs_goes_to_the_worker_that_it_prefers),
        RIG_TEST(a_preference_for_a_full_worker_does_not_keep_a_task_waiting),
        RIG_TEST(a_preference_is_worth_a_second_of_waiting),
        RIG_TEST(a_task_with_inputs_goes_to_the_worker_that_it_prefers),
        RIG_TEST(a_named_worker_is_preferred_where_others_are_allowed),
        RIG_TEST(a_task_is_sent_ahead_if_the_worker_that_it_prefers_is_away),
        RIG_TEST(what_runs_long_goes_to_the_worker_that_it_prefers),
        RIG_TEST(a_task_waits_for_a_worker_that_has_its_op),
        RIG_TEST(the_more_urgent_goes_first),
        RIG_TEST(a_long_running_task_takes_no_slot),
        RIG_TEST(what_runs_long_is_spread_over_the_workers),
        RIG_TEST(many_that_run_long_leave_places_to_the_more_urgent),
        RIG_TEST(nothing_is_sent_while_the_journal_lags_and_the_core_does_not_spin),
        RIG_TEST(what_was_parked_does_not_overtake_what_lets_values_go),
        RIG_TEST(what_runs_long_does_not_keep_a_lost_input_from_a_full_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
