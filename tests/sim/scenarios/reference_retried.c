/* A job failed because the key that it refers to was cancelled. When the job is retried, the
 * reference must not be sent to a worker as a task, which would end the scheduler with an
 * assertion. */
#include "tests/sim/scenarios/scenario.h"

static const char source[] = "{\"namespace\":\"ours\",\"tasks\":{\"x\":{\"op\":\"f\"}}}";

static void a_failed_reference_is_looked_for_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 1});
    uint64_t a = rig_submit(r, source);
    uint64_t b = rig_submit(r, "{\"namespace\":\"ours\",\"tasks\":{\"y\":{\"op\":\"g\",\"args\":"
                               "[{\"ref\":\"x\"}]}}}");
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, a), MR_OK);
    assert_int_equal(rig_job(r, b), MR_JOB_FAILED);
    /* No job defines the key now. */
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, b), MR_ESTATE);
    assert_int_equal(rig_job(r, b), MR_JOB_FAILED);
    uint64_t c = rig_submit(r, source);
    assert_int_equal(rig_ask(r, MR_SCHED_RETRY, b), MR_OK);
    rig_done(r, w, c, "x");
    rig_done(r, w, b, "y");
    assert_int_equal(rig_job(r, b), MR_JOB_DONE);
}

SCENARIO(a_failed_reference_is_looked_for_again)
