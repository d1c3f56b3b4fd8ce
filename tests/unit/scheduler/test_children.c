/* The scheduler's core: jobs that running tasks submit. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define ONE(op) "{\"tasks\":{\"x\":{\"op\":\"" op "\",\"args\":[1]}},\"targets\":[\"x\"]}"

struct family {
    struct rig *r;
    struct rig_worker w;
    uint64_t parent;
};

static struct family begin(const char *op)
{
    const struct rig_spec spec = {.name = "w", .slots = 1};
    struct family f = {.r = rig_new()};
    f.w = rig_join(f.r, &spec);
    f.parent = rig_submit(f.r, strcmp(op, "long") ? ONE("f") : ONE("long"));
    return f;
}

static uint64_t submit_by(struct family *f, uint64_t job, uint32_t attempt)
{
    const struct mr_sched_submit more = {
        .parent = {.job = {job}, .index = rig_index(f->r, job, "x"), .attempt = attempt}};
    return rig_submit_with(f->r, ONE("g"), &more);
}

static void a_task_that_submits_a_job_is_asked_to_leave_its_slot(void **state)
{
    (void)state;
    struct family f = begin("f");
    uint64_t child = submit_by(&f, f.parent, 1);
    assert_int_not_equal(child, 0);
    assert_int_equal(rig_count(f.r, SAID_LEAVE, f.w, f.parent, "x"), 1);
    rig_tell(f.r, f.w, TOLD_LEFT_SLOT, f.parent, "x");
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(f.r->s, f.w.slot, &info));
    assert_int_equal(rig_count(f.r, SAID_TASK, f.w, child, "x"), 1);
    rig_done(f.r, f.w, child, "x");
    assert_int_equal(rig_job(f.r, child), MR_JOB_DONE);
    rig_done(f.r, f.w, f.parent, "x");
    assert_int_equal(rig_job(f.r, f.parent), MR_JOB_DONE);
}

static void a_long_running_task_has_no_slot_to_leave(void **state)
{
    (void)state;
    struct family f = begin("long");
    assert_int_not_equal(submit_by(&f, f.parent, 1), 0);
    assert_int_equal(rig_count(f.r, SAID_LEAVE, f.w, f.parent, NULL), 0);
}

/* The next attempt of a parent takes a slot again, in the scheduler's count and at the worker. */
static void a_parent_that_runs_again_takes_a_slot_until_it_leaves_it_again(void **state)
{
    (void)state;
    struct family f = begin("f");
    uint64_t child = submit_by(&f, f.parent, 1);
    rig_tell(f.r, f.w, TOLD_LEFT_SLOT, f.parent, "x");
    rig_done(f.r, f.w, child, "x");
    rig_end(f.r, f.w, f.parent, "x", MR_OUTCOME_RETURNED);
    rig_heartbeat(f.r, f.w);
    assert_int_equal(rig_attempt(f.r, f.w, f.parent, "x"), 2);
    /* A worker gets only one task of unknown run time for each slot. The parent is such a task, and
     * so is the task of operator "h". */
    uint64_t other = rig_submit(f.r, ONE("h"));
    assert_int_equal(rig_count(f.r, SAID_TASK, f.w, other, "x"), 0);
    rig_tell(f.r, f.w, TOLD_LEFT_SLOT, f.parent, "x");
    assert_int_equal(rig_count(f.r, SAID_TASK, f.w, other, "x"), 1);
}

static void only_a_running_attempt_can_submit(void **state)
{
    (void)state;
    struct family f = begin("f");
    assert_int_equal(submit_by(&f, f.parent, 2), 0);
    assert_int_equal(f.r->code, MR_ESTATE);
    rig_done(f.r, f.w, f.parent, "x");
    assert_int_equal(submit_by(&f, f.parent, 1), 0);
    assert_int_equal(f.r->code, MR_ESTATE);
    assert_non_null(strstr(f.r->text, "does not run"));
}

/* The error names the attempt, the task and the job. */
static void a_refused_submission_of_a_task_says_why(void **state)
{
    (void)state;
    struct family f = begin("f");
    uint64_t job = rig_submit(f.r, "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[1]},"
                                   "\"y\":{\"op\":\"rare\",\"args\":[2]}},"
                                   "\"targets\":[\"x\",\"y\"]}");
    char id[MR_JOB_ID_TEXT_MAX], text[128];
    mr_job_id_format((mr_job_id){job}, id);
    rig_tell(f.r, f.w, TOLD_LEFT_SLOT, f.parent, "x");
    rig_done(f.r, f.w, job, "x");
    assert_int_equal(rig_job(f.r, job), MR_JOB_RUNNING);
    assert_int_equal(submit_by(&f, job, 1), 0); /* the attempt has ended */
    (void)snprintf(text, sizeof text, "parent: attempt 1 of task 0 of job %s does not run", id);
    assert_int_equal(f.r->code, MR_ESTATE);
    assert_string_equal(f.r->text, text);
    struct mr_sched_submit more = {.parent = {.job = {12345}, .attempt = 1}};
    assert_int_equal(rig_submit_with(f.r, ONE("f"), &more), 0);
    assert_int_equal(f.r->code, MR_ESTATE);
    assert_non_null(strstr(f.r->text, "does not run"));
    more.parent.job.v = (uint64_t)0x80000001 << 32 | 7;
    assert_int_equal(rig_submit_with(f.r, ONE("f"), &more), 0);
    assert_int_equal(f.r->code, MR_ESTATE);
    assert_non_null(strstr(f.r->text, "is from a journal that Redis has lost"));
    rig_crash(f.r);
    assert_int_equal(submit_by(&f, f.parent, 1), 0);
    assert_int_equal(f.r->code, MR_EAWAY);
    assert_string_equal(
        f.r->text, "parent: after a restart, the scheduler does not know yet what runs; try again");
}

static void cancelling_the_parent_cancels_child_and_grandchild(void **state)
{
    (void)state;
    struct family f = begin("f");
    /* the child takes the first place in the list of jobs */
    assert_int_equal(rig_ask(f.r, MR_SCHED_FORGET, f.r->first), MR_OK);
    uint64_t child = submit_by(&f, f.parent, 1);
    rig_tell(f.r, f.w, TOLD_LEFT_SLOT, f.parent, "x");
    uint64_t grandchild = submit_by(&f, child, 1);
    assert_int_not_equal(grandchild, 0);
    assert_int_equal(rig_ask(f.r, MR_SCHED_CANCEL, f.parent), MR_OK);
    assert_int_equal(rig_job(f.r, child), MR_JOB_CANCELLED);
    assert_int_equal(rig_job(f.r, grandchild), MR_JOB_CANCELLED);
}

static void a_parent_that_fails_cancels_its_child_and_one_that_is_done_does_not(void **state)
{
    (void)state;
    struct family f = begin("f");
    uint64_t child = submit_by(&f, f.parent, 1);
    rig_end(f.r, f.w, f.parent, "x", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(f.r, f.parent), MR_JOB_FAILED);
    assert_int_equal(rig_job(f.r, child), MR_JOB_CANCELLED);

    uint64_t other = rig_submit(f.r, ONE("f"));
    child = submit_by(&f, other, rig_attempt(f.r, f.w, other, "x"));
    rig_done(f.r, f.w, other, "x");
    assert_int_equal(rig_job(f.r, other), MR_JOB_DONE);
    assert_int_equal(rig_job(f.r, child), MR_JOB_RUNNING);
}

static void families_are_known_after_a_restart_and_a_snapshot(void **state)
{
    (void)state;
    for (int compact = 0; compact < 2; compact++) {
        struct family f = begin("f");
        uint64_t child = submit_by(&f, f.parent, 1);
        if (compact) rig_compact(f.r);
        rig_crash(f.r);
        struct mr_sched_job_info info;
        assert_true(mr_sched_job(f.r->s, (mr_job_id){child}, &info));
        assert_int_equal(info.parent.v, f.parent);
        assert_int_equal(rig_ask(f.r, MR_SCHED_CANCEL, f.parent), MR_OK);
        assert_int_equal(rig_job(f.r, child), MR_JOB_CANCELLED);
        if (!compact) rig_teardown(state);
    }
}

static void a_line_of_children_has_an_end(void **state)
{
    (void)state;
    const struct rig_spec spec = {.name = "w", .slots = 32};
    struct family f = {.r = rig_new()};
    f.w = rig_join(f.r, &spec);
    uint64_t job = rig_submit(f.r, ONE("f"));
    uint32_t generations = 0;
    for (; job && generations < 100; generations++) {
        rig_tell(f.r, f.w, TOLD_LEFT_SLOT, job, "x");
        job = submit_by(&f, job, 1);
    }
    assert_int_equal(generations, 17);
    assert_int_equal(f.r->code, MR_ELIMIT);
    assert_non_null(
        strstr(f.r->text, "would be at depth 17 of jobs that tasks submitted, at most 16"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_that_submits_a_job_is_asked_to_leave_its_slot),
        RIG_TEST(a_long_running_task_has_no_slot_to_leave),
        RIG_TEST(a_parent_that_runs_again_takes_a_slot_until_it_leaves_it_again),
        RIG_TEST(only_a_running_attempt_can_submit),
        RIG_TEST(a_refused_submission_of_a_task_says_why),
        RIG_TEST(cancelling_the_parent_cancels_child_and_grandchild),
        RIG_TEST(a_parent_that_fails_cancels_its_child_and_one_that_is_done_does_not),
        RIG_TEST(families_are_known_after_a_restart_and_a_snapshot),
        RIG_TEST(a_line_of_children_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
