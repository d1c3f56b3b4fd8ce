/* The scheduler's core after Redis has lost the journal or come back with an older copy. Workers
 * and stores then still know an earlier scheduler. Both schedulers may have the same epoch, but
 * they never give the same ids. Other tests replace the store and the worker of a machine that
 * crashed. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define ONE JOB("\"x\":{\"op\":\"f\",\"args\":[1]}", "\"x\"")
#define OTHER JOB("\"x\":{\"op\":\"g\",\"args\":[2]}", "\"x\"")

static const uint64_t first = (uint64_t)5000001 << 32 | 17, second = (uint64_t)6000001 << 32 | 18;

static struct rig *rig_of(uint32_t epoch, uint64_t incarnation)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.epoch = epoch;
    c.incarnation = incarnation;
    return rig_new_with(&c);
}

static bool was_said(const struct rig *r, const char *words)
{
    for (uint32_t i = 0; i < r->notes_count; i++)
        if (r->texts[i] && strstr(r->texts[i], words)) return true;
    return false;
}

static void a_value_of_another_life_is_never_taken_for_one_of_ours(void **state)
{
    struct rig *r = rig_of(1, first);
    const struct rig_spec spec = {.name = "a"};
    struct rig_worker a = rig_join(r, &spec);
    uint64_t old = rig_submit(r, ONE);
    rig_done(r, a, old, "x");
    assert_int_equal(rig_job(r, old), MR_JOB_DONE);
    (void)rig_teardown(state);

    /* This scheduler has an empty journal, as if Redis had lost the first one. */
    r = rig_of(1, second);
    uint64_t young = rig_submit(r, OTHER);
    assert_true(young != old);
    const struct mr_ws_run run = {.job = {old}, .count = 1};
    uint32_t x = 0, one = 1;
    struct mr_ws_register more = {.incarnation = a.incarnation, .epoch = 1, .scheduler = first};
    more.holding = (struct mr_ws_completed){
        .tasks = {&run, 1, &x, &one, 1}, .inline_bytes = &one, .inlined = MR_STR("v")};
    (void)rig_join_as(r, &spec, &more);
    assert_true(r->last.was_refused);
    assert_true(was_said(r, "from a journal that Redis has lost"));
    more.incarnation = 0;
    a = rig_join_as(r, &spec, &more);
    assert_int_equal(rig_count(r, SAID_ADOPT, a, old, NULL), 0);
    assert_int_equal(rig_state(r, young, "x"), MR_TASK_RUNNING);
    rig_done(r, a, young, "x");
    assert_int_equal(rig_job(r, young), MR_JOB_DONE);
}

static void an_epoch_is_above_all_that_others_have_seen(void **state)
{
    (void)state;
    struct rig *r = rig_of(2, second);
    const struct rig_spec a = {.name = "a"}, b = {.name = "b"}, c = {.name = "c"},
                          d = {.name = "d"};
    struct mr_ws_register more = {.epoch = 1, .scheduler = first};
    (void)rig_join_as(r, &a, &more);
    assert_int_equal(mr_sched_epoch(r->s), 2);
    more.epoch = 2;
    uint64_t before = r->sequence;
    (void)rig_join_as(r, &b, &more);
    assert_int_equal(mr_sched_epoch(r->s), 3);
    assert_true(r->sequence > before); /* the new epoch is in the journal */
    more = (struct mr_ws_register){.epoch = 3, .scheduler = second};
    (void)rig_join_as(r, &c, &more); /* this scheduler itself gave epoch 3, so its epoch stays 3 */
    assert_int_equal(mr_sched_epoch(r->s), 3);
    struct mr_sched_event ev = {.type = MR_SCHED_STORE_REGISTER};
    ev.store = (struct mr_sched_store){
        .store = 7, .node = MR_STR("n"), .address = MR_STR("n"), .epoch = 9, .scheduler = first};
    rig_step(r, &ev);
    assert_int_equal(mr_sched_epoch(r->s), 10);
    more = (struct mr_ws_register){.epoch = UINT32_MAX, .scheduler = first};
    (void)rig_join_as(r, &d, &more); /* an epoch that no scheduler can have reached is ignored */
    assert_int_equal(mr_sched_epoch(r->s), 10);
}

static void a_journal_says_who_wrote_it(void **state)
{
    (void)state;
    struct rig *r = rig_of(1, first);
    uint64_t old = rig_submit(r, ONE);
    rig_crash(r);
    uint64_t young = rig_submit(r, OTHER);
    assert_true(mr_job_id_tag((mr_job_id){young}) != mr_job_id_tag((mr_job_id){old}));
    assert_int_equal(rig_job(r, old), MR_JOB_PENDING);
    for (int i = 0; i < 2; i++) {
        assert_false(mr_sched_is_lost_journal(r->s, mr_job_id_tag((mr_job_id){old})));
        assert_false(mr_sched_is_lost_journal(r->s, mr_job_id_tag((mr_job_id){young})));
        assert_true(mr_sched_is_lost_journal(r->s, (uint32_t)(second >> 32)));
        rig_compact(r); /* the next restart reads a snapshot */
        rig_crash(r);
    }
}

/* ---- a machine that crashed and is there again ----------------------------------------------- */

static uint32_t replaced(const struct rig *r)
{
    const struct mr_sched_note *n = (const void *)r->notes.p;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->notes_count; i++)
        count += n[i].type == MR_NOTE_STORE_LOST && n[i].code == MR_EEXIST;
    return count;
}

#define CHAIN                                                                                      \
    JOB("\"x\":{\"op\":\"f\",\"args\":[1]},\"y\":{\"op\":\"g\",\"args\":[{\"ref\":\"x\"}]}",       \
        "\"x\",\"y\"")

/* Makes a job whose first target is an object of store 1 on node "n". Then restarts the scheduler
 * `restarts` times; the store does not come back. */
static uint64_t crashed(struct rig *r, uint32_t restarts)
{
    const struct rig_spec spec = {.name = "a", .store = 1};
    rig_store(r, 1, "n");
    struct rig_worker a = rig_join(r, &spec);
    uint64_t job = rig_submit(r, CHAIN);
    (void)rig_done_object(r, a, job, "x");
    for (uint32_t i = 0; i < restarts; i++)
        rig_crash(r);
    return job;
}

static void a_new_store_of_its_node_ends_the_old_one_at_once(void **state)
{
    (void)state;
    for (uint32_t restarts = 0; restarts < 3; restarts++) {
        struct rig *r = rig_new();
        uint64_t job = crashed(r, restarts);
        if (restarts == 2) rig_compact(r);
        mr_time before = r->now;
        const struct rig_spec spec = {.name = "a", .store = 2};
        rig_store(r, 2, "n");
        assert_int_equal(replaced(r), 1);
        /* without a restart, the first worker is still connected: it belongs to the old store */
        if (!restarts) rig_close(r, r->last);
        struct rig_worker a = rig_join(r, &spec);
        assert_int_equal(rig_state(r, job, "x"), MR_TASK_RUNNING);
        (void)rig_done_object(r, a, job, "x");
        rig_done(r, a, job, "y");
        assert_int_equal(rig_job(r, job), MR_JOB_DONE);
        assert_true(r->now - before < r->c.lease); /* no lease had to end */
        (void)rig_teardown(state);
    }
}

static void what_a_new_store_finds_on_its_disk_is_not_made_again(void **state)
{
    for (uint32_t restarts = 0; restarts < 2; restarts++) {
        struct rig *r = rig_new();
        uint64_t job = crashed(r, restarts);
        r->has_disk = true;
        rig_store(r, 2, "n");
        char bytes[64];
        struct mr_sched_value v = rig_value(r, job, "x", bytes);
        assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
        assert_int_equal(v.kind, MR_SCHED_VALUE_OBJECT);
        assert_true(rig_is_held(r, v.object));
        /* The journal still names the old store in its record of the value. */
        rig_crash(r);
        r->has_disk = true;
        rig_store(r, 2, "n");
        assert_int_equal(replaced(r), 0);
        v = rig_value(r, job, "x", bytes);
        assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
        r->has_disk = false;
        rig_crash(r);
        /* The store had the object before and has lost it. */
        rig_store(r, 2, "n");
        assert_int_not_equal(rig_state(r, job, "x"), MR_TASK_DONE);
        (void)rig_teardown(state);
    }
}

/* A worker reports an object of the new store before that store registers. The journal then names
 * the new store in a value before it says on which node the store is. */
static void a_new_store_that_a_value_names_first_ends_the_old_one(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    uint64_t job = crashed(r, 0);
    const struct rig_spec spec = {.name = "b", .store = 2};
    struct rig_worker b = rig_join(r, &spec);
    uint64_t other = rig_submit(r, JOB("\"z\":{\"op\":\"f\",\"args\":[2]}", "\"z\""));
    (void)rig_done_object(r, rig_attempt(r, b, other, "z") ? b : r->last, other, "z");
    r->has_disk = true;
    rig_store(r, 2, "n");
    rig_crash(r); /* also checks that a snapshot of the core is read back as the same state */
    rig_compact(r);
    rig_crash(r);
    r->has_disk = true;
    rig_store(r, 2, "n");
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    assert_int_equal(rig_state(r, other, "z"), MR_TASK_DONE);
    (void)rig_teardown(state);
}

static void a_new_worker_ends_one_of_its_name_whose_store_is_dead(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec old = {.name = "a", .store = 1}, young = {.name = "a", .store = 2};
    rig_store(r, 1, "n");
    struct rig_worker a = rig_join(r, &old);
    (void)rig_join(r, &young);
    /* The worker is refused: two workers of one name may be a mistake of the operator. */
    assert_true(r->last.was_refused);
    rig_store(r, 2, "n");
    struct rig_worker b = rig_join(r, &young);
    assert_false(r->last.was_refused);
    assert_true(a.incarnation != b.incarnation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_value_of_another_life_is_never_taken_for_one_of_ours),
        RIG_TEST(an_epoch_is_above_all_that_others_have_seen),
        RIG_TEST(a_journal_says_who_wrote_it),
        RIG_TEST(a_new_store_of_its_node_ends_the_old_one_at_once),
        RIG_TEST(what_a_new_store_finds_on_its_disk_is_not_made_again),
        RIG_TEST(a_new_store_that_a_value_names_first_ends_the_old_one),
        RIG_TEST(a_new_worker_ends_one_of_its_name_whose_store_is_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
