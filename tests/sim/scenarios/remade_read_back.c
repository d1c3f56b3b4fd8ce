/* The object of a target was lost with its store and made again, so the journal has two values for
 * the target. A restarted scheduler must take the last one and not run the task again. */
#include "tests/sim/scenarios/scenario.h"

static void of_two_journaled_values_the_last_one_counts(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n1");
    rig_store(r, 0x52, "n2");
    struct rig_worker w =
        rig_join(r, &(struct rig_spec){.name = "w", .slots = 1, .store = 0x51, .node = "n1"});
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"},\"y\":{\"op\":\"g\"}}}");
    mr_object_id first = rig_done_object(r, w, job, "x");
    rig_object_lost(r, 0x51, first);
    mr_object_id second = rig_done_object(r, w, job, "x");
    assert_false(mr_object_id_eq(first, second));
    rig_crash(r);
    char text[64];
    struct mr_sched_value v = rig_value(r, job, "x", text);
    assert_int_equal(v.kind, MR_SCHED_VALUE_OBJECT);
    assert_true(mr_object_id_eq(v.object, second));
}

SCENARIO(of_two_journaled_values_the_last_one_counts)
