/* The scheduler's core: a store whose memory is nearly full. The tests check that values are used
 * up before other large values are made. */
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

#define MIB ((uint64_t)1 << 20)

/* Submits a shuffle: parts are cut from three values, and each result needs one part of each value.
 * Returns the job. */
static uint64_t submit_shuffle(struct rig *r)
{
    return rig_submit(
        r, JOB(T("x0", "f", "0", "") "," T("x1", "f", "1", "") "," T("x2", "f", "2", "") "," T(
                   "c00", "g", R("x0") ",0", "") "," T("c01", "g", R("x0") ",1", "") "," T("c02",
                   "g", R("x0") ",2", "") "," T("c03", "g", R("x0") ",3", "") "," T("c10", "g",
                   R("x1") ",0", "") "," T("c11", "g", R("x1") ",1", "") "," T("c20", "g",
                   R("x2") ",0", "") "," T("c21", "g", R("x2") ",1", "") "," T("y0", "f",
                   R("c00") "," R("c10") "," R("c20"),
                   "") "," T("y1", "f", R("c01") "," R("c11") "," R("c21"), "") "," T("y2", "f",
                   R("c02"), "") "," T("y3", "f", R("c03"), ""),
               "\"y0\",\"y1\",\"y2\",\"y3\""));
}

/* Begins a shuffle on a worker that is sent two tasks at a time. Makes the first value and its
 * first part. Returns the rig, and in `job_out` the job. */
static struct rig *begin_shuffle(
    struct rig_worker *w, uint64_t memory, uint64_t part, uint64_t *job_out)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.queue = 1;
    struct rig *r = rig_new_with(&c);
    r->store_memory = memory;
    rig_store(r, 0x51, "a");
    *w = join(r, "a", 1, 0x51);
    rig_warm(r, *w);
    uint64_t job = submit_shuffle(r);
    r->object_bytes = MIB;
    (void)rig_done_object(r, *w, job, "x0");
    r->object_bytes = part;
    rig_done_as(r, *w, job, "c00", 1, MR_OUTCOME_OK, (mr_object_id){7, ++r->objects}, 0, MR_MS);
    *job_out = job;
    return r;
}

static void in_a_store_that_fills_a_value_is_used_up_before_the_next_is_made(void **state)
{
    (void)state;
    struct rig_worker w;
    uint64_t job;
    struct rig *r = begin_shuffle(&w, 4 * MIB, MIB / 4, &job);
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "c01"), 1);
    r->object_bytes = MIB;
    (void)rig_done_object(r, w, job, "x1");
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "c02"), 1);
    r->object_bytes = MIB / 4;
    (void)rig_done_object(r, w, job, "c01");
    (void)rig_done_object(r, w, job, "c02");
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "c03"), 1);
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "x2"), 0);
    (void)rig_done_object(r, w, job, "c03");
    assert_int_equal(rig_state(r, job, "x0"), MR_TASK_RELEASED);
}

static void roots_of_large_results_wait_while_a_value_is_used_up(void **state)
{
    (void)state;
    struct rig_worker w;
    uint64_t job;
    struct rig *r = begin_shuffle(&w, 4 * MIB, MIB / 4, &job);
    (void)rig_done_object(r, w, job, "c01");
    (void)rig_done_object(r, w, job, "c02");
    rig_forget_rows(r);
    r->object_bytes = MIB;
    rig_done_as(r, w, job, "x1", 1, MR_OUTCOME_OK, (mr_object_id){7, ++r->objects}, 0, MR_MS);
    /* x2 waits, because c03 still has to be made from x0. */
    assert_int_equal(rig_count(r, SAID_TASK, w, job, "x2"), 0);
}

static void roots_of_large_results_wait_for_a_store_that_is_nearly_full(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->store_memory = 4 * MIB;
    rig_store(r, 0x51, "a");
    struct rig_worker w = join(r, "a", 1, 0x51);
    rig_warm(r, w);
    uint64_t job = rig_submit(r, JOB(T("x0", "f", "0", "") "," T("x1", "g", "1", "") "," T(
                                         "s", "g", R("x0"), "") "," T("y", "g", R("x1"), ""),
                                     "\"s\",\"y\",\"x0\",\"x1\""));
    r->object_bytes = 7 * MIB / 2; /* the store has 4 MiB, so one value nearly fills it */
    (void)rig_done_object(r, w, job, "x0");
    uint64_t more =
        rig_submit(r, JOB(T("r0", "f", "0", "") "," T("r1", "f", "1", "") "," T("r2", "g", "1", ""),
                          "\"r0\",\"r1\",\"r2\""));
    /* Operator f is known to make large values. */
    assert_int_equal(rig_count(r, SAID_TASK, w, more, "r0"), 0);
    assert_int_equal(rig_count(r, SAID_TASK, w, more, "r2"), 1); /* operator g makes small values */
    for (int i = 0; i < 3; i++) {
        const char *const keys[] = {"x1", "s", "y"};
        rig_done(r, w, job, keys[i]);
    }
    rig_done(r, w, more, "r2");
    /* The worker is idle, and no large result is being made for the store. So one root may run
     * although the store is nearly full. */
    assert_int_equal(rig_count(r, SAID_TASK, w, more, "r0"), 1);
    assert_int_equal(rig_count(r, SAID_TASK, w, more, "r1"), 0);
}

/* Two idle workers use a store that is three quarters full. Submits two root tasks (without inputs)
 * and returns how many of them are sent. */
static uint32_t send_two_roots(
    struct rig *r, struct rig_worker w[2], mr_duration took, uint64_t *more)
{
    r->store_memory = 8 * MIB;
    rig_store(r, 0x51, "a");
    w[0] = join(r, "a", 1, 0x51);
    w[1] = join(r, "b", 1, 0x51);
    rig_warm(r, w[0]);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "0", ",\"workers\":[\"a\"]"), "\"x\""));
    r->object_bytes = 6 * MIB;
    rig_done_as(r, w[0], job, "x", 1, MR_OUTCOME_OK, (mr_object_id){7, ++r->objects}, 0, took);
    *more = rig_submit(r, JOB(T("r0", "f", "0", "") "," T("r1", "f", "1", ""), "\"r0\",\"r1\""));
    uint32_t sent = 0;
    for (int i = 0; i < 2; i++)
        sent +=
            rig_count(r, SAID_TASK, w[i], *more, "r0") + rig_count(r, SAID_TASK, w[i], *more, "r1");
    return sent;
}

static void roots_for_a_store_that_is_nearly_full_come_one_at_a_time(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w[2];
    uint64_t job;
    assert_int_equal(send_two_roots(r, w, MR_MS, &job), 1);
    uint32_t at = rig_count(r, SAID_TASK, w[1], job, "r0");
    r->object_bytes = MIB;
    (void)rig_done_object(r, w[at], job, "r0");
    assert_int_equal(
        rig_count(r, SAID_TASK, w[0], job, "r1") + rig_count(r, SAID_TASK, w[1], job, "r1"), 1);
}

static void roots_that_take_longer_than_the_disk_come_one_a_worker(void **state)
{
    (void)state;
    struct rig_worker w[2];
    uint64_t job;
    assert_int_equal(send_two_roots(rig_new(), w, 10 * MR_SECOND, &job), 2);
}

/* A root is a task without inputs. While only a long-running task runs, no memory becomes free
 * soon, and this task may wait for the value of a root. So one root may run although the store is
 * full. */
static void beside_what_runs_long_one_root_may_run_in_a_full_store(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->store_memory = 8 * MIB;
    rig_store(r, 0x51, "a");
    struct rig_worker w = join(r, "a", 1, 0x51);
    rig_warm(r, w);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "0", ""), "\"x\""));
    r->object_bytes = 7 * MIB;
    (void)rig_done_object(r, w, job, "x");
    uint64_t role = rig_submit(r, JOB(T("l", "long", "1", ""), "\"l\""));
    assert_int_equal(rig_count(r, SAID_TASK, w, role, "l"), 1);
    uint64_t more =
        rig_submit(r, JOB(T("r0", "f", "0", "") "," T("r1", "f", "1", ""), "\"r0\",\"r1\""));
    assert_int_equal(rig_count(r, SAID_TASK, w, more, NULL), 1);
}

static void who_waits_for_a_child_does_not_count_as_making_a_result(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->store_memory = 8 * MIB;
    rig_store(r, 0x51, "a");
    struct rig_worker w[2] = {join(r, "a", 1, 0x51), join(r, "b", 1, 0x51)};
    rig_warm(r, w[0]);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "0", ",\"workers\":[\"a\"]"), "\"x\""));
    r->object_bytes = 6 * MIB;
    (void)rig_done_object(r, w[0], job, "x");
    uint64_t parent = rig_submit(r, JOB(T("p", "f", "1", ""), "\"p\""));
    uint32_t at = rig_count(r, SAID_TASK, w[1], parent, "p");
    rig_tell(r, w[at], TOLD_LEFT_SLOT, parent, "p");
    uint64_t child = rig_submit(r, JOB(T("c", "f", "2", ""), "\"c\""));
    assert_int_equal(
        rig_count(r, SAID_TASK, w[0], child, "c") + rig_count(r, SAID_TASK, w[1], child, "c"), 1);
}

static void with_room_for_all_or_large_parts_the_order_stays(void **state)
{
    (void)state;
    const uint64_t memory[] = {64 * MIB, 4 * MIB}, part[] = {MIB / 4, MIB};
    for (int i = 0; i < 2; i++) {
        struct rig_worker w;
        uint64_t job;
        struct rig *r = begin_shuffle(&w, memory[i], part[i], &job);
        assert_int_equal(rig_count(r, SAID_TASK, w, job, "c01"), 0);
        (void)rig_teardown(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(in_a_store_that_fills_a_value_is_used_up_before_the_next_is_made),
        RIG_TEST(roots_of_large_results_wait_while_a_value_is_used_up),
        RIG_TEST(roots_of_large_results_wait_for_a_store_that_is_nearly_full),
        RIG_TEST(roots_for_a_store_that_is_nearly_full_come_one_at_a_time),
        RIG_TEST(roots_that_take_longer_than_the_disk_come_one_a_worker),
        RIG_TEST(beside_what_runs_long_one_root_may_run_in_a_full_store),
        RIG_TEST(who_waits_for_a_child_does_not_count_as_making_a_result),
        RIG_TEST(with_room_for_all_or_large_parts_the_order_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
