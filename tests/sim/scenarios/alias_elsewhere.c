/* An alias is a reference to a key of another job. A node gets a new store, which has the objects
 * of the node's old store. The scheduler writes a part of a snapshot and crashes. The journal now
 * has the new store for a value, but still the old store for an alias of the value. The scheduler
 * reads this journal. When the scheduler gives up the old store, the alias loses its value. The
 * value itself must not count as lost. */
#include "tests/sim/scenarios/scenario.h"

/* Appends one record of the snapshot to the journal: the first with values. The journal then ends
 * as if a crash had cut off the snapshot after this record. */
static void append_values(struct rig *r, const struct mr_buf *snapshot)
{
    for (size_t at = 0; at < snapshot->n;) {
        struct mr_sched_record_head h;
        memcpy(&h, snapshot->p + at, sizeof h);
        size_t bytes = sizeof h + (size_t)mr_align_up(h.bytes, 8);
        if (h.type == MR_RECORD_VALUES) {
            h.sequence = r->acked;
            mr_buf_add(&r->journal, &h, sizeof h);
            mr_buf_add(&r->journal, snapshot->p + at + sizeof h, bytes - sizeof h);
            return;
        }
        at += bytes;
    }
    fail();
}

static void an_alias_that_is_lost_leaves_its_source_that_is_elsewhere(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "n");
    struct rig_worker w =
        rig_join(r, &(struct rig_spec){.name = "w", .slots = 1, .store = 0x51, .node = "n"});
    uint64_t job = rig_submit(r, "{\"namespace\":\"s\",\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    mr_object_id object = rig_done_object(r, w, job, "x");
    uint64_t user = rig_submit(r, "{\"namespace\":\"s\",\"tasks\":{\"y\":{\"op\":\"g\",\"args\":["
                                  "{\"ref\":\"x\"}]}}}");
    assert_int_not_equal(user, 0);
    rig_compact(r); /* the snapshot has the alias and its value */
    rig_crash(r);
    r->has_disk = true;
    rig_store(r, 0x52, "n"); /* the new store has the disk of store 0x51 */
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_UNHELD};
    ev.objects = (struct mr_sched_objects){.store = 0x52, .ids = &object, .count = 1};
    rig_step(r, &ev);
    MR_AUTO(mr_buf_fini) struct mr_buf snapshot;
    mr_buf_init(&snapshot, 1 << 20);
    mr_sched_snapshot(r->s, &snapshot);
    rig_ack(r);
    append_values(r, &snapshot);
    rig_crash(r);
    rig_store(r, 0x52, "n");
    for (int i = 0; i < 60; i++) { /* store 0x51 does not come back */
        rig_pass(r, MR_SECOND);
        ev = (struct mr_sched_event){.type = MR_SCHED_STORE_HEARD, .store = {.store = 0x52}};
        rig_step(r, &ev);
    }
    char text[64];
    struct mr_sched_value v = rig_value(r, job, "x", text);
    assert_int_equal(v.kind, MR_SCHED_VALUE_OBJECT);
    assert_true(mr_object_id_eq(v.object, object));
    w = rig_join(r, &(struct rig_spec){.name = "v", .slots = 1, .store = 0x52, .node = "n"});
    assert_int_equal(rig_attempt(r, w, job, "x"), 0);
    rig_done(r, w, user, "y");
}

SCENARIO(an_alias_that_is_lost_leaves_its_source_that_is_elsewhere)
