/* Dispatch pauses while the journal is behind. The time of the next steal, which is then in the
 * past, must not make the scheduler ask for turn after turn. */
#include "tests/sim/scenarios/scenario.h"

static void a_paused_scheduler_sleeps(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.unacked_bytes_max = 4096;
    struct rig *r = rig_new_with(&c);
    (void)rig_join(r, &(struct rig_spec){.name = "v", .slots = 1});
    (void)rig_submit(r, "{\"tasks\":{\"a\":{\"op\":\"f\"},\"b\":{\"op\":\"f\"},\"c\":{"
                        "\"op\":\"f\"},\"d\":{\"op\":\"f\"},\"e\":{\"op\":\"f\"}}}");
    (void)rig_join(r, &(struct rig_spec){.name = "w", .slots = 1});
    r->acks = false;
    /* Dispatch pauses as soon as more than unacked_bytes_max bytes of records are
     * unacknowledged. */
    for (int i = 0; i < 200; i++)
        (void)rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"rare\"}}}");
    rig_pass(r, 3 * MR_SECOND); /* rig_pass fails if turns do not end */
    assert_true(mr_sched_deadline(r->s) > r->now);
}

SCENARIO(a_paused_scheduler_sleeps)
