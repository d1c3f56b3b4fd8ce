/* The scheduler's core: lost values are made again, values that are known are not made again, also
 * after a restart. Keys that jobs share are made once. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define STORE 0x51
#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define SHARED(tasks, targets)                                                                     \
    "{\"namespace\":\"s\",\"tasks\":{" tasks "},\"targets\":[" targets "]}"

static struct rig_worker join(struct rig *r, const char *name, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = 4, .store = store};
    return rig_join(r, &spec);
}

static void lose(struct rig *r, struct rig_worker w)
{
    struct mr_sched_event ev = {
        .type = MR_SCHED_WORKER_CRASHED, .slot = w.slot, .incarnation = w.incarnation};
    rig_step(r, &ev);
    rig_turn(r);
}

static void what_only_a_lost_worker_had_is_made_again_with_its_lineage(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    /* The scheduler has no room for small values, so they stay at the workers. */
    c.inline_blocks = 8;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = join(r, "a", 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), "") "," T(
                                         "z", "h", R("y") ",2", "") "," T("w", "h", "3", ""),
                                     "\"z\",\"w\""));
    rig_done_bytes(r, a, job, "x", 1000);
    rig_done_bytes(r, a, job, "y", 1000);
    rig_done(r, a, job, "w");
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RELEASED);
    lose(r, a);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_READY);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_WAITING);
    assert_int_equal(rig_state(r, job, "w"), MR_TASK_DONE);
    struct rig_worker b = join(r, "b", 0);
    rig_done_bytes(r, b, job, "x", 1000);
    rig_done_bytes(r, b, job, "y", 1000);
    rig_done(r, b, job, "z");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_lost_target_of_a_done_job_is_made_again_when_it_is_asked_for(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker a = join(r, "a", STORE);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    mr_object_id id = rig_done_object(r, a, job, "x");
    rig_object_lost(r, STORE, id);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, "x"), 1);
    rig_want(r, job, "x");
    assert_int_equal(rig_count(r, SAID_TASK, a, job, "x"), 2);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_value(r, job, "x", NULL).kind, MR_SCHED_VALUE_INLINE);
}

static void a_store_that_is_gone_takes_its_objects_along(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker a = join(r, "a", STORE);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
    (void)rig_done_object(r, a, job, "x");
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_RUNNING);
    rig_store(r, STORE + 1, "a"); /* a new store registers on the node of the first one */
    assert_int_equal(rig_count(r, SAID_TASK, a, job, "x"), 2);
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_WAITING);
}

static void a_store_that_was_silent_too_long_comes_back(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker a = join(r, "a", STORE);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"x\",\"y\""));
    (void)rig_done_object(r, a, job, "x");
    for (int i = 0; i < 4; i++) { /* the worker sends heartbeats, its store does not */
        rig_pass(r, r->c.lease / 3);
        rig_heartbeat(r, a);
    }
    /* The objects of the silent store are made again. */
    assert_int_equal(rig_count(r, SAID_TASK, a, job, "x"), 2);
    rig_store(r, STORE, "a");
    (void)rig_done_object(r, a, job, "x");
    rig_done(r, a, job, "y");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    /* The returned store is told to hold the new object. */
    assert_int_equal(rig_held(r), 1);
}

static void a_store_that_was_replaced_does_not_come_back(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker a = join(r, "a", STORE);
    rig_store(r, STORE + 1, "a");
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    /* The replaced store registers late. */
    rig_store(r, STORE, "a");
    rig_done(r, a, job, "x");
    uint64_t incarnation = 0;
    struct mr_str node, address;
    bool is_alive = true;
    assert_true(mr_sched_store(r->s, 1, &incarnation, &node, &address, &is_alive));
    assert_false(is_alive);
    assert_true(mr_sched_store(r->s, 2, &incarnation, &node, &address, &is_alive));
    assert_true(is_alive);
}

static struct rig *many_objects(struct rig_worker *a, uint64_t *job, mr_object_id *ids)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.scan_values = 4;
    struct rig *r = rig_new_with(&c);
    rig_store(r, STORE, "a");
    *a = join(r, "a", STORE);
    *job = rig_submit(r, "{\"tasks\":{\"k${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],"
                         "\"for\":{\"i\":12}},\"end\":{\"op\":\"g\",\"args\":[{\"each\":"
                         "{\"ref\":\"k${i}\"},\"for\":{\"i\":12}}]}},\"targets\":[\"end\"]}");
    for (int i = 0; i < 12; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", i);
        ids[i] = rig_done_object(r, *a, *job, key);
    }
    return r;
}

static uint32_t unfinished(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info.counts[MR_TASK_WAITING] + info.counts[MR_TASK_READY] + info.counts[MR_TASK_RUNNING];
}

static void the_loss_of_a_store_is_worked_off_in_stretches(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t job = 0;
    mr_object_id ids[12];
    struct rig *r = many_objects(&a, &job, ids);
    assert_int_equal(unfinished(r, job), 1);
    struct mr_sched_event ev = {.type = MR_SCHED_STORE_REGISTER};
    ev.store = (struct mr_sched_store){
        .store = STORE + 1, .node = MR_STR("a"), .address = MR_STR("b"), .memory_bytes = 1};
    /* The core asks the new store for the objects of the dead one, four in one stretch. */
    rig_step(r, &ev);
    assert_int_equal(r->missing_count, 4);
    assert_true(mr_sched_deadline(r->s) <= r->now);
    struct mr_sched_event tick = {.type = MR_SCHED_TICK};
    rig_step(r, &tick);
    assert_int_equal(r->missing_count, 8);
    assert_int_equal(unfinished(r, job), 1);
    rig_turn(r);
    assert_int_equal(unfinished(r, job), 13);
}

static void lost_objects_are_found_however_far_back(void **state)
{
    (void)state;
    struct rig_worker a;
    uint64_t job = 0;
    mr_object_id ids[12];
    struct rig *r = many_objects(&a, &job, ids);
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_LOST};
    ev.objects = (struct mr_sched_objects){.store = STORE, .ids = &ids[10], .count = 2};
    rig_step(r, &ev);
    ev.objects = (struct mr_sched_objects){.store = STORE, .ids = ids, .count = 1};
    /* The scan for the lost objects 10 and 11 is still under way. */
    rig_step(r, &ev);
    assert_int_equal(unfinished(r, job), 1);
    rig_turn(r);
    assert_int_equal(unfinished(r, job), 4);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, "k0"), 2);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, "k1"), 1);
}

static void a_restart_waits_for_its_workers_or_their_leases(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
    rig_done(r, a, job, "x");
    rig_crash(r);
    struct rig_worker b = join(r, "b", 0);
    rig_pass(r, r->c.lease / 2);
    rig_heartbeat(r, b);
    assert_int_equal(rig_count(r, SAID_TASK, b, job, NULL), 0);
    rig_pass(r, r->c.lease / 2 + MR_MS);
    /* No worker that has the value came back, so x is made again. */
    assert_int_equal(rig_attempt(r, b, job, "x"), 1);
    rig_done(r, b, job, "x");
    rig_done(r, b, job, "y");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* Checks invariant I10 of docs/invariants.md. */
static void a_returning_worker_keeps_what_it_has_and_what_it_runs(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
    rig_done(r, a, job, "x");
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    rig_crash(r);
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    uint32_t x = rig_index(r, job, "x"), y = rig_index(r, job, "y"), one = 1;
    struct mr_ws_register more = {.incarnation = a.incarnation, .epoch = 1};
    more.holding = (struct mr_ws_completed){
        .tasks = {&run, 1, &x, &one, 1}, .inline_bytes = &one, .inlined = MR_STR("v")};
    more.queued = (struct mr_ws_refs){&run, 1, &y, &one, 1};
    const struct rig_spec spec = {.name = "a", .node = "a", .slots = 4};
    a = rig_join_as(r, &spec, &more);
    assert_int_equal(rig_count(r, SAID_ADOPT, a, job, "x"), 1);
    assert_int_equal(rig_count(r, SAID_KEEP, a, job, "y"), 1);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 0);
    rig_done_as(r, a, job, "y", 1, MR_OUTCOME_OK, (mr_object_id){0, 0}, 1, MR_MS);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

static void a_journaled_target_is_not_made_again_after_a_restart(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t job =
        rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), "") "," T("z", "h", "7", ""),
                          "\"y\",\"z\""));
    rig_done(r, a, job, "x");
    rig_done(r, a, job, "y");
    for (int i = 0; i < 2; i++) {
        rig_crash(r);
        assert_int_equal(rig_state(r, job, "y"), MR_TASK_DONE);
        assert_int_equal(rig_state(r, job, "x"), MR_TASK_RELEASED);
        char bytes[64];
        assert_int_equal(rig_value(r, job, "y", bytes).kind, MR_SCHED_VALUE_INLINE);
        assert_string_equal(bytes, "y");
        rig_compact(r); /* the next restart reads a snapshot */
    }
    rig_pass(r, r->c.lease + MR_MS);
    a = join(r, "b", 0);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 1);
    rig_done(r, a, job, "z");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* Checks invariant I7 of docs/invariants.md. */
static void what_the_journal_does_not_have_was_not_accepted(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->acks = false;
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    assert_int_equal(rig_notes(r, MR_NOTE_REPLY, job), 0);
    rig_crash(r);
    assert_int_equal(rig_job(r, job), MR_JOB_NONE);
}

/* Checks invariant I8 of docs/invariants.md. */
static void the_end_of_a_job_is_told_when_the_journal_has_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    r->acks = false;
    rig_done(r, a, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 0);
    assert_int_equal(rig_value(r, job, "x", NULL).kind, MR_SCHED_VALUE_UNACKED);
    rig_ack(r);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_notes(r, MR_NOTE_TARGETS_READY, job), 1);
}

static void a_key_with_a_value_is_copied(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    (void)rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    uint64_t one = mr_sched_job_newest(r->s).v;
    rig_done(r, a, one, "k");
    uint64_t two = rig_submit(r, SHARED(T("k", "f", "1", "") "," T("n", "g", R("k"), ""), "\"n\""));
    assert_int_equal(rig_count(r, SAID_TASK, a, two, "k"), 0);
    rig_done(r, a, two, "n");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
}

static void a_key_under_way_is_waited_for(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    uint64_t two = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    assert_int_equal(rig_state(r, two, "k"), MR_TASK_WAITING);
    rig_done(r, a, one, "k");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    char bytes[64];
    assert_int_equal(rig_value(r, two, "k", bytes).kind, MR_SCHED_VALUE_INLINE);
    assert_string_equal(bytes, "k");
}

static void another_definition_of_a_key_is_refused_and_names_the_job(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    char id[MR_JOB_ID_TEXT_MAX];
    mr_job_id_format((mr_job_id){rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""))}, id);
    assert_int_equal(rig_submit(r, SHARED(T("k", "f", "2", ""), "\"k\"")), 0);
    assert_int_equal(r->code, MR_EEXIST);
    assert_non_null(strstr(r->text, id));
}

static void when_the_source_fails_the_joined_task_runs_itself(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    uint64_t two = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    rig_end(r, a, one, "k", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(r, one), MR_JOB_FAILED);
    rig_done(r, a, two, "k");
    assert_int_equal(rig_job(r, two), MR_JOB_DONE);
    assert_int_equal(rig_submit(r, SHARED(T("k", "f", "5", ""), "\"k\"")), 0);
    assert_int_equal(r->code, MR_EEXIST); /* the second job now defines the key */
}

static void a_key_that_failed_is_free_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    rig_end(r, a, one, "k", MR_OUTCOME_ERROR);
    assert_int_not_equal(rig_submit(r, SHARED(T("k", "f", "5", ""), "\"k\"")), 0);
}

static void a_job_whose_keys_are_used_is_not_forgotten(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    rig_done(r, a, one, "k");
    uint64_t two = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, one), MR_ESTATE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, two), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, one), MR_OK);
    assert_int_equal(rig_job(r, one), MR_JOB_NONE);
    assert_true(mr_sched_forgotten(r->s, (mr_job_id){one}) > 0);
}

static void source_and_user_can_be_forgotten_in_one_turn(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 0);
    uint64_t one = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    rig_done(r, a, one, "k");
    uint64_t two = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    struct mr_sched_event ev = {.type = MR_SCHED_FORGET, .job = {two}, .ticket = 1};
    rig_step(r, &ev);
    ev.job.v = one;
    rig_step(r, &ev);
    assert_int_equal(r->code, MR_OK);
    rig_turn(r);
    assert_int_equal(rig_job(r, one), MR_JOB_NONE);
    uint64_t three = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    rig_done(r, a, three, "k");
    uint64_t four = rig_submit(r, SHARED(T("k", "f", "1", ""), "\"k\""));
    assert_int_equal(rig_job(r, four), MR_JOB_DONE);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, four), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, three), MR_OK);
    assert_null(rig_leftover(r));
}

static void a_result_that_is_persisted_under_its_name_is_not_made_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker a = join(r, "a", STORE);
    const struct mr_sched_resolved there = {
        .index = 1, .object = {7, 7}, .bytes = 1000, .store = STORE};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    uint64_t job = rig_submit_with(r,
        JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ",\"persist\":\"name\""), "\"y\""), &more);
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    assert_int_equal(rig_count(r, SAID_TASK, a, job, NULL), 0);
    struct mr_sched_value v = rig_value(r, job, "y", NULL);
    assert_int_equal(v.kind, MR_SCHED_VALUE_OBJECT);
    assert_int_equal(v.object.number, 7);
}

static void too_many_ended_jobs_are_forgotten_the_oldest_first(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.keep_jobs_max = 2;
    struct rig *r = rig_new_with(&c);
    struct rig_worker a = join(r, "a", 0);
    uint64_t jobs[4], running = rig_submit(r, JOB(T("x", "rare", "1", ""), "\"x\""));
    for (int i = 0; i < 4; i++) {
        jobs[i] = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
        rig_done(r, a, jobs[i], "x");
    }
    rig_pass(r, MR_SECOND);
    /* A job that has not ended is not forgotten. */
    assert_int_equal(rig_job(r, running), MR_JOB_PENDING);
    assert_int_equal(rig_job(r, jobs[0]), MR_JOB_NONE);
    assert_int_equal(rig_job(r, jobs[1]), MR_JOB_NONE);
    assert_int_equal(rig_job(r, jobs[2]), MR_JOB_DONE);
    assert_int_equal(rig_job(r, jobs[3]), MR_JOB_DONE);
}

/* One message of a worker says both that x is done and that x is missing. x is made again; the next
 * attempt of y must not wait for the old value. */
static void an_input_that_is_told_of_and_missed_in_one_message_is_made_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "a");
    struct rig_worker a = join(r, "a", STORE);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "g", R("x"), ""), "\"y\""));
    uint32_t outcome[2] = {MR_OUTCOME_OK, MR_OUTCOME_LOST_INPUT}, bytes[2] = {0, 0};
    uint32_t index[2] = {rig_index(r, job, "x"), rig_index(r, job, "y")}, attempt[2] = {1, 1};
    assert_int_equal(rig_attempt(r, a, job, "y"), 1); /* y was sent before x had a value */
    const struct mr_ws_run run = {.job = {job}, .count = 2};
    const uint64_t times[2] = {0, 0}, maker = 7, number = 9, object_bytes = 4096;
    const struct mr_ws_missing gone = {{job}, index[1], 1, index[0], MR_STR("it is gone")};
    struct mr_ws_up m = {.missing = &gone, .missing_count = 1};
    m.completed = (struct mr_ws_completed){.tasks = {&run, 1, index, attempt, 2},
        .outcome = outcome,
        .inline_bytes = bytes,
        .started_ns = times,
        .duration_ns = times,
        .object_maker = &maker,
        .object_number = &number,
        .object_bytes = &object_bytes,
        .objects_count = 1};
    rig_message(r, a, &m);
    rig_heartbeat(r, a);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
}

/* Returns the first record of `type` in the rig's journal. */
static char *journal_record(struct rig *r, uint32_t type, size_t *n)
{
    for (size_t at = 0; at < r->journal.n;) {
        struct mr_sched_record_head h;
        memcpy(&h, r->journal.p + at, sizeof h);
        *n = h.bytes;
        if (h.type == type) return (char *)r->journal.p + at + sizeof h;
        at += sizeof h + (size_t)mr_align_up(h.bytes, 8);
    }
    mr_panic(__FILE__, __LINE__, "no record of type %u", type);
}

static void a_job_that_the_journal_does_not_give_back_is_counted_with_its_reason(void **state)
{
    (void)state;
    struct rig *r = rig_new_empty();
    uint64_t whole = rig_submit(r, JOB(T("x", "f", "1", ""), "\"x\""));
    mr_job_id job;
    struct mr_error why;
    rig_crash(r);
    assert_int_equal(mr_sched_unread(r->s, &job, &why), 0);
    assert_int_equal(rig_job(r, whole), MR_JOB_PENDING);
    size_t n = 0;
    char *graph = journal_record(r, MR_RECORD_GRAPH, &n);
    /* The first 16 bytes stay intact: the job's id, and the offset of the graph's bytes. */
    memset(graph + 16, 0xff, n - 16);
    rig_crash(r);
    assert_int_equal(mr_sched_unread(r->s, &job, &why), 1);
    assert_int_equal(job.v, whole);
    assert_true(why.text[0]);
    assert_int_equal(mr_sched_job_newest(r->s).v, 0);
    uint64_t nowhere = 8;
    memcpy(graph + 8, &nowhere, sizeof nowhere);
    rig_crash(r);
    assert_int_equal(mr_sched_unread(r->s, &job, &why), 1);
    assert_non_null(strstr(why.text, "its graph is incomplete"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(what_only_a_lost_worker_had_is_made_again_with_its_lineage),
        RIG_TEST(a_lost_target_of_a_done_job_is_made_again_when_it_is_asked_for),
        RIG_TEST(a_store_that_is_gone_takes_its_objects_along),
        RIG_TEST(a_store_that_was_silent_too_long_comes_back),
        RIG_TEST(a_store_that_was_replaced_does_not_come_back),
        RIG_TEST(the_loss_of_a_store_is_worked_off_in_stretches),
        RIG_TEST(lost_objects_are_found_however_far_back),
        RIG_TEST(a_restart_waits_for_its_workers_or_their_leases),
        RIG_TEST(a_returning_worker_keeps_what_it_has_and_what_it_runs),
        RIG_TEST(a_journaled_target_is_not_made_again_after_a_restart),
        RIG_TEST(what_the_journal_does_not_have_was_not_accepted),
        RIG_TEST(the_end_of_a_job_is_told_when_the_journal_has_it),
        RIG_TEST(a_key_with_a_value_is_copied),
        RIG_TEST(a_key_under_way_is_waited_for),
        RIG_TEST(another_definition_of_a_key_is_refused_and_names_the_job),
        RIG_TEST(when_the_source_fails_the_joined_task_runs_itself),
        RIG_TEST(a_key_that_failed_is_free_again),
        RIG_TEST(a_job_whose_keys_are_used_is_not_forgotten),
        RIG_TEST(source_and_user_can_be_forgotten_in_one_turn),
        RIG_TEST(a_result_that_is_persisted_under_its_name_is_not_made_again),
        RIG_TEST(too_many_ended_jobs_are_forgotten_the_oldest_first),
        RIG_TEST(an_input_that_is_told_of_and_missed_in_one_message_is_made_again),
        RIG_TEST(a_job_that_the_journal_does_not_give_back_is_counted_with_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
