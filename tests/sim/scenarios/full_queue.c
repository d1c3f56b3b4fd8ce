/* The scheduler sent a chain of tasks ahead to the only worker, and the chain filled the worker's
 * queue. The worker returned the chain's first task. The scheduler has to send this task again,
 * although the tasks that wait for it fill the queue. */
#include "tests/sim/scenarios/scenario.h"

#include <stdio.h>

static void what_the_queue_waits_for_finds_a_place_in_it(void **state)
{
    (void)state;
    static char json[8192];
    size_t n = (size_t)snprintf(json, sizeof json, "{\"tasks\":{\"k0\":{\"op\":\"f\"}");
    for (int i = 1; i < 30; i++)
        n += (size_t)snprintf(json + n, sizeof json - n,
            ",\"k%d\":{\"op\":\"f\",\"args\":[{\"ref\":\"k%d\"}]}", i, i - 1);
    (void)snprintf(json + n, sizeof json - n, "}}");
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 1});
    uint64_t first = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    rig_done_as(r, w, first, "x", 0, MR_OUTCOME_OK, (mr_object_id){0, 0}, 8, 2 * MR_MS);
    /* Each task runs for 2 ms, and the worker's queue has room for 5 ms of work. */
    uint64_t job = rig_submit(r, json);
    assert_int_not_equal(rig_attempt(r, w, job, "k1"), 0);
    rig_end(r, w, job, "k0", MR_OUTCOME_RETURNED);
    rig_heartbeat(r, w);
    rig_pass(r, MR_SECOND / 2);
    assert_int_equal(rig_state(r, job, "k0"), MR_TASK_RUNNING);
}

SCENARIO(what_the_queue_waits_for_finds_a_place_in_it)
