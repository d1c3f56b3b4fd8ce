/* A collection is a value that refers to other values, its parts. After a restart the scheduler
 * reads a part and its collection back from the journal. The collection does not fit into the
 * scheduler's cache of inline values, so it is lost. Then nothing refers to the part, and the part
 * is released. When a client asks for the collection, the tasks of both values run again. The check
 * of invariant I10 (tests/sim/guard.c) must allow this. */
#include "tests/sim/scenarios/scenario.h"

#define STORE 0x51

static void a_part_is_let_go_of_when_its_collection_found_no_room(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 2; /* room for 56 bytes */
    struct rig *r = rig_new_with(&c);
    const struct rig_spec spec = {.name = "w", .slots = 1, .store = STORE};
    rig_store(r, STORE, "n");
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"},\"c\":{\"op\":\"ref\",\"args\":"
                                 "[{\"ref\":\"x\"}]}},\"targets\":[\"c\"]}");
    mr_object_id part = rig_done_object(r, w, job, "x");
    rig_done_bytes(r, w, job, "c", 100);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_true(rig_is_held(r, part));
    rig_crash(r);
    rig_store(r, STORE, "n");
    rig_pass(r, 60 * MR_SECOND);
    assert_false(rig_is_held(r, part));
    /* Another worker joins, because the first one is lost with its values. */
    w = rig_join(r, &spec);
    rig_want(r, job, "c");
    rig_done(r, w, job, "x");
    rig_done_bytes(r, w, job, "c", 100);
    assert_int_equal(rig_state(r, job, "c"), MR_TASK_DONE);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

SCENARIO(a_part_is_let_go_of_when_its_collection_found_no_room)
