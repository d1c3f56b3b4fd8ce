/* The journal has a target that refers to the key of another job. A restarted scheduler must not
 * give the target a second value, which would end the scheduler with an assertion. */
#include "tests/sim/scenarios/scenario.h"

static void a_reference_that_was_journaled_is_read_back(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 1});
    uint64_t a = rig_submit(r, "{\"namespace\":\"ours\",\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    uint64_t b = rig_submit(r, "{\"namespace\":\"ours\",\"tasks\":{\"y\":{\"op\":\"g\",\"args\":"
                               "[{\"ref\":\"x\"}]}},\"targets\":[\"x\",\"y\"]}");
    rig_done(r, w, a, "x");
    rig_crash(r);
    assert_int_equal(rig_job(r, a), MR_JOB_DONE);
    assert_int_equal(rig_state(r, b, "x"), MR_TASK_DONE);
    w = rig_join_as(r, &(struct rig_spec){.name = "w", .slots = 1},
        &(struct mr_ws_register){.incarnation = w.incarnation, .epoch = 1});
    rig_done(r, w, b, "y");
    assert_int_equal(rig_job(r, b), MR_JOB_DONE);
}

SCENARIO(a_reference_that_was_journaled_is_read_back)
