/* The scheduler's core: object stores register, fall silent, are replaced, and report objects that
 * they have lost or want to drop. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
    return rig_join(r, &spec);
}

static struct mr_sched_event store_event(
    enum mr_sched_event_type type, uint64_t store, const char *node)
{
    struct mr_sched_event ev = {.type = type};
    ev.store = (struct mr_sched_store){
        .store = store, .node = mr_str(node), .address = MR_STR("a"), .memory_bytes = 1 << 30};
    return ev;
}

static void heard(struct rig *r, uint64_t store)
{
    struct mr_sched_event ev = store_event(MR_SCHED_STORE_HEARD, store, "");
    rig_step(r, &ev);
    rig_turn(r);
}

/* Returns the incarnation of store `number`; 0: there is no such store. */
static uint64_t store_at(struct rig *r, uint32_t number, bool *is_alive, struct mr_str *node)
{
    uint64_t incarnation = 0;
    struct mr_str address;
    return mr_sched_store(r->s, number, &incarnation, node, &address, is_alive) ? incarnation : 0;
}

static bool is_alive(struct rig *r, uint64_t store)
{
    bool alive = false;
    struct mr_str node;
    for (uint32_t i = 1; i <= mr_sched_stores_count(r->s); i++)
        if (store_at(r, i, &alive, &node) == store) return alive;
    return false;
}

static uint64_t store_of(struct rig *r, uint64_t job, const char *key)
{
    bool alive;
    struct mr_str node;
    return store_at(r, rig_value(r, job, key, NULL).store, &alive, &node);
}

static uint32_t lost(const struct rig *r)
{
    return rig_notes(r, MR_NOTE_STORE_LOST, 0);
}

/* ---- registration ---------------------------------------------------------------------------- */

static void a_store_beyond_the_limit_is_not_taken(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    for (uint64_t i = 1; i <= RIG_STORES; i++)
        rig_store(r, i, (const char *[]){"", "1", "2", "3", "4", "5", "6"}[i]);
    assert_int_equal(rig_notes(r, MR_NOTE_STORE_JOINED, 0), RIG_STORES);
    rig_store(r, 99, "more");
    assert_int_equal(rig_notes(r, MR_NOTE_STORE_JOINED, 0), RIG_STORES);
    assert_int_equal(mr_sched_stores_count(r->s), RIG_STORES);
    struct mr_sched_worker_info info;
    struct rig_worker w = join(r, "a", 1, 99);
    assert_true(mr_sched_worker(r->s, w.slot, &info) && info.store == 0);
    w = join(r, "b", 1, 0);
    assert_true(mr_sched_worker(r->s, w.slot, &info) && info.store == 0);
    w = join(r, "c", 1, 2);
    assert_true(mr_sched_worker(r->s, w.slot, &info) && info.store == 2);
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.stores, RIG_STORES);
}

static void sessions_of_stores_that_open_and_close_are_counted(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 1, "n");
    uint32_t changes = mr_sched_stores_changes(r->s);
    heard(r, 1);
    heard(r, 5); /* the scheduler does not know this store */
    rig_store_close(r, 5);
    assert_int_equal(mr_sched_stores_changes(r->s), changes);
    rig_store_close(r, 1);
    assert_int_equal(mr_sched_stores_changes(r->s), changes + 1);
    assert_false(is_alive(r, 1));
    rig_store_close(r, 1);
    assert_int_equal(mr_sched_stores_changes(r->s), changes + 1);
    heard(r, 1);
    assert_int_equal(mr_sched_stores_changes(r->s), changes + 2);
    assert_true(is_alive(r, 1));
    rig_store(r, 2, "m");
    assert_int_equal(mr_sched_stores_changes(r->s), changes + 3);
}

static void the_name_of_a_node_is_kept_whole_through_a_restart(void **state)
{
    (void)state;
    char name[128];
    memset(name, 'n', sizeof name);
    for (size_t bytes = 126; bytes < 128; bytes++) {
        struct rig *r = rig_new();
        name[bytes] = 0;
        rig_store(r, 1, "a name that is replaced");
        rig_store(r, 1, name);
        for (int life = 0; life < 2; life++) {
            bool alive;
            struct mr_str node;
            assert_int_equal(store_at(r, 1, &alive, &node), 1);
            assert_int_equal(node.n, bytes);
            assert_true(mr_str_eq(node, mr_str(name)));
            if (life) rig_compact(r);
            rig_crash(r);
        }
        rig_store(r, 2, name);
        /* The restarted scheduler knows the whole name: a new store of the same node replaces
         * the first one. */
        assert_int_equal(lost(r), 1);
        name[bytes] = 'n';
        (void)rig_teardown(state);
    }
}

/* While a store has no session, the shell keeps the batch of messages for the store. */
static void what_waited_for_a_store_is_sent_when_it_registers(void **state)
{
    (void)state;
    for (int has_waited = 0; has_waited < 2; has_waited++) {
        struct rig *r = rig_new();
        rig_store(r, 1, "n");
        struct rig_worker w = join(r, "a", 1, 1);
        uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
        uint32_t index = rig_index(r, job, "x"), one = 1;
        const uint64_t maker = 7, number = 8, bytes = 1000;
        const struct mr_ws_run run = {.job = {job}, .count = 1};
        struct mr_sched_event ev = {
            .type = MR_SCHED_WORKER_MESSAGE, .slot = w.slot, .incarnation = w.incarnation};
        ev.message.completed = (struct mr_ws_completed){.tasks = {&run, 1, &index, &one, 1},
            .object_maker = &maker,
            .object_number = &number,
            .object_bytes = &bytes,
            .objects_count = 1};
        rig_store_close(r, 1);
        if (has_waited) mr_sched_step(r->s, r->now, &ev, &r->fx);
        mr_sched_effects_clear(&r->fx);
        ev = store_event(MR_SCHED_STORE_REGISTER, 1, "n");
        mr_sched_step(r->s, r->now, &ev, &r->fx);
        assert_int_equal(r->fx.dirty_stores.n, sizeof(uint32_t));
        uint32_t dirty;
        memcpy(&dirty, r->fx.dirty_stores.p, sizeof dirty);
        assert_int_equal(dirty, 1);
        assert_true(r->fx.store[1].has_registered);
        assert_true(!r->fx.store[1].hold.n == !has_waited);
        (void)rig_teardown(state);
    }
}

/* ---- leases ---------------------------------------------------------------------------------- */

static void a_store_is_lost_a_lease_after_it_was_last_heard(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    rig_pass(r, MR_SECOND);
    rig_store(r, 1, "n");
    rig_pass(r, MR_SECOND);
    heard(r, 1);
    mr_time last = r->now;
    rig_pass(r, r->c.lease - 1);
    assert_int_equal(mr_sched_deadline(r->s), last + r->c.lease);
    assert_int_equal(lost(r), 0);
    rig_pass(r, 1);
    assert_int_equal(lost(r), 1);
    assert_false(is_alive(r, 1));
    heard(r, 1); /* too late: the store has to register again */
    assert_false(is_alive(r, 1));
    rig_store(r, 1, "n"); /* the store was only silent, so it may register again */
    assert_true(is_alive(r, 1));
    rig_store(r, 2, "n");
    assert_int_equal(lost(r), 2);
    rig_store(r, 1, "n"); /* store 1 was replaced, so it may not register again */
    assert_false(is_alive(r, 1));
    assert_true(is_alive(r, 2));
}

static void a_store_of_the_journal_has_four_leases_to_come_again(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    rig_store(r, 1, "n");
    struct rig_worker w = join(r, "a", 1, 1);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    (void)rig_done_object(r, w, job, "x");
    rig_pass(r, 5 * MR_SECOND);
    rig_crash(r);
    rig_pass(r, 4 * r->c.lease - 1);
    assert_int_equal(lost(r), 0);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    rig_pass(r, 1);
    assert_int_equal(lost(r), 1);
    assert_int_equal(rig_value(r, job, "x", NULL).kind, MR_SCHED_VALUE_NONE);
    rig_crash(r);
    rig_store(r, 1, "n"); /* from now on the store has the usual lease */
    rig_pass(r, r->c.lease - 1);
    assert_int_equal(lost(r), 0);
    rig_pass(r, 1);
    assert_int_equal(lost(r), 1);
}

/* ---- replacement ----------------------------------------------------------------------------- */

/* Store 2 replaces store 1 of the same node. The journal names store 2 in the record of a value
 * before it says on which node store 2 is. */
static void after_a_restart_objects_of_a_replaced_store_are_of_its_heir(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 9, "other");
    rig_store(r, 1, "n");
    struct rig_worker a = join(r, "a", 1, 1);
    uint64_t job = rig_submit(r, JOB(T("w", "f", "0", "") "," T("x", "f", "1", ""), "\"w\",\"x\""));
    (void)rig_done_object(r, a, job, "w");
    (void)rig_done_object(r, a, job, "x");
    struct rig_worker b = join(r, "b", 1, 2), c = join(r, "c", 1, 9);
    const char at_b[] = JOB("\"z\":{\"op\":\"f\",\"args\":[2],\"workers\":[\"b\"]}", "\"z\"");
    const char at_c[] = JOB("\"z\":{\"op\":\"f\",\"args\":[3],\"workers\":[\"c\"]}", "\"z\"");
    uint64_t young = rig_submit(r, at_b), apart = rig_submit(r, at_c);
    (void)rig_done_object(r, b, young, "z");
    (void)rig_done_object(r, c, apart, "z");
    assert_int_equal(store_of(r, job, "x"), 1);
    r->has_disk = true;
    rig_store(r, 2, "n");
    assert_int_equal(lost(r), 1);
    for (int life = 0; life < 3; life++) {
        assert_int_equal(store_of(r, job, "w"), 2);
        assert_int_equal(store_of(r, job, "x"), 2);
        assert_int_equal(store_of(r, young, "z"), 2);
        assert_int_equal(store_of(r, apart, "z"), 9);
        if (life == 1) rig_compact(r);
        rig_crash(r);
    }
    r->has_disk = true;
    rig_store(r, 2, "n");
    rig_store(r, 9, "other");
    /* Both stores send heartbeats; store 1, which was replaced, does not return. */
    for (int i = 0; i < 50; i++) {
        rig_pass(r, MR_SECOND);
        heard(r, 2);
        heard(r, 9);
    }
    assert_int_equal(store_of(r, job, "x"), 2);
    assert_int_equal(rig_state(r, job, "w") + rig_state(r, job, "x"), 2 * MR_TASK_DONE);
    assert_int_equal(rig_state(r, young, "z") + rig_state(r, apart, "z"), 2 * MR_TASK_DONE);
}

/* ---- objects that a store lost or would drop ------------------------------------------------- */

#define OBJECTS 5

/* Makes objects v0 to v4 in store 1. Each object is the input of one task (u0 to u4), which no
 * worker can run. */
static uint64_t make_objects(struct rig *r, mr_object_id id[OBJECTS])
{
    rig_store(r, 1, "n");
    rig_store(r, 2, "m");
    struct rig_worker w = join(r, "a", 8, 1);
    uint64_t job = rig_submit(r,
        "{\"tasks\":{\"v${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":5}},\"u${i}\":"
        "{\"op\":\"rare\",\"args\":[{\"ref\":\"v${i}\"}],\"for\":{\"i\":5}}}}");
    for (uint32_t i = 0; i < OBJECTS; i++) {
        const char key[] = {'v', (char)('0' + i), 0};
        id[i] = rig_done_object(r, w, job, key);
    }
    return job;
}

static uint32_t left(struct rig *r, uint64_t job)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < OBJECTS; i++)
        n += rig_state(r, job, (const char[]){'v', (char)('0' + i), 0}) == MR_TASK_DONE;
    return n;
}

static void tell(struct rig *r, enum mr_sched_event_type type, uint64_t store,
    const mr_object_id *ids, uint32_t count)
{
    struct mr_sched_event ev = {.type = type};
    ev.objects = (struct mr_sched_objects){.store = store, .ids = ids, .count = count};
    rig_step(r, &ev);
}

static void tick(struct rig *r)
{
    struct mr_sched_event ev = {.type = MR_SCHED_TICK};
    rig_step(r, &ev);
}

static void lost_objects_are_looked_for_a_few_values_a_step(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.scan_values = 2;
    struct rig *r = rig_new_with(&c);
    mr_object_id id[OBJECTS];
    uint64_t job = make_objects(r, id);
    const mr_object_id first[] = {id[3], id[1], id[0]}, then[] = {id[4], {99, 1}, id[2]};
    tell(r, MR_SCHED_OBJECTS_LOST, 1, NULL, 0);
    tell(r, MR_SCHED_OBJECTS_LOST, 77, id, OBJECTS); /* no such store */
    tell(r, MR_SCHED_OBJECTS_LOST, 2, id, OBJECTS);  /* store 2 has none of these objects */
    rig_turn(r);
    assert_int_equal(left(r, job), 5);
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_LOST};
    ev.objects = (struct mr_sched_objects){.store = 1, .ids = first, .count = 3};
    mr_sched_step(r->s, r->now, &ev, &r->fx);
    /* The core does not tell the store to release objects that are lost. */
    assert_int_equal(r->fx.store[1].unhold.n, 0);
    assert_int_equal(left(r, job), 3); /* v0 and v1 were found to be lost */
    /* These objects wait until the first search has ended. */
    tell(r, MR_SCHED_OBJECTS_LOST, 1, then, 2);
    tell(r, MR_SCHED_OBJECTS_LOST, 1, then + 2, 1);
    assert_int_equal(mr_sched_deadline(r->s), r->now);
    assert_int_equal(left(r, job), 3);
    tick(r);
    assert_int_equal(left(r, job), 2); /* v3 was found to be lost */
    uint32_t ticks = 0;
    for (; mr_sched_deadline(r->s) <= r->now && ticks < 100; ticks++)
        tick(r);
    assert_int_equal(left(r, job), 0);
    assert_in_range(ticks, 3, 5); /* the two reports that waited share one search */
}

static void the_objects_of_a_lost_store_are_made_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    mr_object_id id[OBJECTS];
    uint64_t job = make_objects(r, id);
    assert_int_equal(rig_held(r), 5);
    for (int i = 0; i < 5; i++) { /* store 1 sends no heartbeat */
        rig_pass(r, r->c.lease / 4);
        heard(r, 2);
        rig_heartbeat(r, r->last);
    }
    assert_int_equal(lost(r), 1);
    assert_int_equal(left(r, job), 0);
}

/* The completion was under way when the node's next store registered. The task runs again, because
 * its object went with the old store. */
static void an_object_that_is_reported_after_its_store_was_replaced_is_lost(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 1, "n");
    struct rig_worker a = join(r, "a", 1, 1);
    uint64_t job = rig_submit(r, JOB(T("w", "f", "0", "") "," T("x", "f", R("w"), ""), "\"x\""));
    rig_store(r, 2, "n");
    assert_int_equal(lost(r), 1);
    (void)rig_done_object(r, a, job, "w");
    assert_int_not_equal(rig_state(r, job, "w"), MR_TASK_DONE);
}

/* Store `store` asks whether it may drop the objects `ids`. Returns how many of them the core wants
 * to keep. */
static size_t claimed(struct rig *r, uint64_t store, const mr_object_id *ids, uint32_t count)
{
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_UNHELD};
    ev.objects = (struct mr_sched_objects){.store = store, .ids = ids, .count = count};
    mr_sched_step(r->s, r->now, &ev, &r->fx);
    size_t n = r->fx.store[store].claimed.n / sizeof *ids;
    rig_turn(r);
    return n;
}

static void a_store_keeps_what_jobs_still_use(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    mr_object_id id[OBJECTS];
    uint64_t job = make_objects(r, id);
    const mr_object_id other[] = {{99, 1}, id[2], {7, 0}};
    assert_int_equal(claimed(r, 1, other, 3), 1);
    assert_int_equal(claimed(r, 2, other, 3), 0); /* the object is in store 1 */
    assert_int_equal(claimed(r, 1, other, 0), 0);
    assert_int_equal(store_of(r, job, "v2"), 1);
    rig_store_close(r, 1);
    /* Store 1 has no session, and store 2 has a copy of the object. */
    assert_int_equal(claimed(r, 2, other, 3), 1);
    assert_int_equal(store_of(r, job, "v2"), 2);
    assert_int_equal(store_of(r, job, "v1"), 1);
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_UNHELD};
    ev.objects = (struct mr_sched_objects){.store = 88, .ids = other, .count = 3};
    rig_step(r, &ev); /* no such store */
    rig_turn(r);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    bool is_told = false; /* store 2 was told that no job uses the object any more */
    for (uint32_t i = 0; i < r->holds_count; i++)
        is_told = is_told || (r->holds[i].store == 2 && mr_object_id_eq(r->holds[i].object, id[2]));
    assert_true(is_told);
}

/* A search for objects ends after it has looked at all values. Then the next search begins. */
static void two_searches_at_once_both_end(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.scan_values = 1;
    struct rig *r = rig_new_with(&c);
    mr_object_id id[OBJECTS];
    uint64_t job = make_objects(r, id);
    tell(r, MR_SCHED_OBJECTS_LOST, 1, id, 1);
    const mr_object_id both[] = {id[4], id[1]};
    tell(r, MR_SCHED_OBJECTS_UNHELD, 1, both, 2);
    tell(r, MR_SCHED_OBJECTS_LOST, 1, both, 1);
    assert_int_equal(left(r, job), 4);
    uint32_t ticks = 0;
    while (mr_sched_deadline(r->s) <= r->now && ticks < 100) {
        tick(r);
        ticks++;
    }
    /* each tell() above starts a search, and each search looks at five values */
    assert_in_range(ticks, 10, 20);
    assert_int_equal(left(r, job), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_store_beyond_the_limit_is_not_taken),
        RIG_TEST(sessions_of_stores_that_open_and_close_are_counted),
        RIG_TEST(the_name_of_a_node_is_kept_whole_through_a_restart),
        RIG_TEST(what_waited_for_a_store_is_sent_when_it_registers),
        RIG_TEST(a_store_is_lost_a_lease_after_it_was_last_heard),
        RIG_TEST(a_store_of_the_journal_has_four_leases_to_come_again),
        RIG_TEST(after_a_restart_objects_of_a_replaced_store_are_of_its_heir),
        RIG_TEST(lost_objects_are_looked_for_a_few_values_a_step),
        RIG_TEST(the_objects_of_a_lost_store_are_made_again),
        RIG_TEST(an_object_that_is_reported_after_its_store_was_replaced_is_lost),
        RIG_TEST(a_store_keeps_what_jobs_still_use),
        RIG_TEST(two_searches_at_once_both_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
