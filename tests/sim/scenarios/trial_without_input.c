/* A quarantined task (one that may have killed workers) was sent to a worker that was kept free for
 * it, and then lost an input. The task that makes the input again must not be placed on this
 * worker, or both would wait for ever. */
#include "tests/sim/scenarios/scenario.h"

static struct rig_worker join(struct rig *r, const char *name)
{
    return rig_join(r, &(struct rig_spec){.name = name, .node = name, .slots = 1});
}

/* Reports that the worker's process died while it ran the task `ran` (NULL: no task). */
static void crash(struct rig *r, struct rig_worker w, uint64_t job, const char *ran)
{
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t index = ran ? rig_index(r, job, ran) : 0;
    uint32_t attempt = ran ? rig_attempt(r, w, job, ran) : 0;
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w.slot, .incarnation = w.incarnation};
    if (ran) ev.refs = (struct mr_ws_refs){&run, 1, &index, &attempt, 1};
    rig_step(r, &ev);
    rig_turn(r);
}

static void a_quarantined_task_whose_input_is_lost_gives_its_worker_back(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker x = join(r, "x"), y = join(r, "y");
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"p\":{\"op\":\"f\",\"workers\":[\"x\"]},"
        "\"q\":{\"op\":\"f\",\"args\":[{\"ref\":\"p\"}],\"workers\":[\"y\"]},"
        "\"b\":{\"op\":\"f\",\"args\":[{\"ref\":\"q\"}],\"workers\":[\"x\"]}},\"targets\":[\"b\"]}");
    rig_done(r, x, job, "p");
    (void)rig_done_object(r, y, job, "q");
    assert_int_not_equal(rig_attempt(r, x, job, "b"), 0);
    crash(r, x, job, "b");
    x = join(r, "x");
    assert_true(rig_row(r, SAID_TASK, job, "b")->alone);
    crash(r, y, job, NULL);
    y = join(r, "y");
    assert_int_equal(rig_state(r, job, "p"), MR_TASK_RUNNING);
    rig_done(r, x, job, "p");
    (void)rig_done_object(r, y, job, "q");
    rig_done(r, x, job, "b");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

SCENARIO(a_quarantined_task_whose_input_is_lost_gives_its_worker_back)
