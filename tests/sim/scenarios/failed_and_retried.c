/* After a restart of the scheduler, a worker returns with a value of a failed job. The value is not
 * adopted, and the job is retried before the worker learns of that. So the task rightly runs again
 * elsewhere while the worker still has the value: the check of invariant I10 (tests/sim/guard.c)
 * must allow this. */
#include "tests/sim/scenarios/scenario.h"

static void what_a_failed_job_left_at_a_worker_is_made_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec first = {.name = "a"}, second = {.name = "b"};
    struct rig_worker a = rig_join(r, &first);
    uint64_t job =
        rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"},\"bad\":{\"op\":\"g\",\"args\":"
                      "[{\"ref\":\"x\"}]},\"y\":{\"op\":\"f\",\"args\":[{\"ref\":\"x\"}]}},"
                      "\"targets\":[\"bad\",\"y\"]}");
    rig_done(r, a, job, "x");
    rig_end(r, a, job, "bad", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);

    uint32_t x = rig_index(r, job, "x"), one = 1;
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    struct mr_ws_register more = {.incarnation = a.incarnation};
    more.holding = (struct mr_ws_completed){
        .tasks = {&run, 1, &x, &one, 1}, .inline_bytes = &one, .inlined = MR_STR("\x07")};
    a = rig_join_as(r, &first, &more);
    assert_int_equal(rig_count(r, SAID_ADOPT, a, job, "x"), 0);

    struct rig_worker b = rig_join(r, &second);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
    assert_int_equal(
        rig_count(r, SAID_TASK, a, job, "x") + rig_count(r, SAID_TASK, b, job, "x"), 1);
    struct rig_worker w = rig_count(r, SAID_TASK, a, job, "x") ? a : b;
    rig_done(r, w, job, "x");
    rig_done(r, rig_count(r, SAID_TASK, a, job, "bad") ? a : b, job, "bad");
    rig_done(r, rig_count(r, SAID_TASK, a, job, "y") ? a : b, job, "y");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

SCENARIO(what_a_failed_job_left_at_a_worker_is_made_again)
