/* The scheduler's core: tasks that use a store when the store dies. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define STORE 0x51
#define GRACE(r) (2 * (r)->c.lease + 20 * MR_SECOND)

static struct rig_worker join(struct rig *r)
{
    const struct rig_spec spec = {.name = "a", .node = "n", .slots = 2, .store = STORE};
    rig_store(r, STORE, "n");
    return rig_join(r, &spec);
}

/* The task fails because it could not use a store. The task is sent again after its worker's next
 * heartbeat. */
static void fails_by_its_store(struct rig *r, struct rig_worker w, uint64_t job, const char *key)
{
    rig_end(r, w, job, key, MR_OUTCOME_LOST_INPUT);
    rig_heartbeat(r, w);
}

static void a_task_that_a_store_failed_runs_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    for (uint32_t i = 0; i < 5; i++) {
        fails_by_its_store(r, a, job, "x");
        assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
        assert_int_equal(rig_attempt(r, a, job, "x"), i + 2);
    }
    rig_done(r, a, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
    const struct mr_sched_span *s = (const void *)r->spans.p;
    assert_int_equal(r->spans.n, 6 * sizeof *s);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(s[i].outcome, i < 5 ? MR_OUTCOME_LOST_INPUT : MR_OUTCOME_OK);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.retried, 5);
}

static void pass(struct rig *r, struct rig_worker w, mr_duration time)
{
    for (mr_time end = r->now + time; r->now < end;) {
        rig_heartbeat(r, w);
        rig_pass(r, MR_MIN(r->c.lease / 2, end - r->now));
    }
    rig_heartbeat(r, w);
}

static void what_fails_for_longer_than_a_store_is_away_fails_with_its_reason(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, STORE, "elsewhere");
    rig_store_close(r, STORE);
    rig_pass(r, 2 * r->c.lease); /* from now on no store comes or goes */
    const struct rig_spec spec = {.name = "a"};
    struct rig_worker a = rig_join(r, &spec);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    fails_by_its_store(r, a, job, "x");
    pass(r, a, GRACE(r));
    rig_end(r, a, job, "x", MR_OUTCOME_LOST_INPUT);
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_true(info.has_error && info.error.message.n);
}

/* A task that runs for long fails rarely, so each failure seems to be the first for a while. Its
 * retries must end nevertheless. */
static void a_long_task_that_no_store_serves_is_not_tried_for_ever(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "a"}; /* the worker has no store at all */
    struct rig_worker a = rig_join(r, &spec);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    int runs = 0;
    while (rig_job(r, job) == MR_JOB_RUNNING) {
        assert_true(runs++ < 20);
        pass(r, a, 3 * GRACE(r)); /* the task runs for this time */
        rig_end(r, a, job, "x", MR_OUTCOME_LOST_INPUT);
        rig_heartbeat(r, a);
    }
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
    assert_int_equal(runs, 9); /* the first attempt and eight retries */
}

static void the_next_death_of_a_store_is_another(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    for (int i = 0; i < 3; i++) {
        fails_by_its_store(r, a, job, "x");
        pass(r, a, GRACE(r) - MR_SECOND);
        rig_store_close(r, STORE);
        rig_store(r, STORE, "n");
    }
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    rig_done(r, a, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_DONE);
}

/* A store that is heard all the time does not come or go, so it does not prolong the retries. */
static void a_store_that_is_heard_does_not_prolong_the_retries(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r);
    uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
    struct mr_sched_event ev = {.type = MR_SCHED_STORE_HEARD};
    ev.store.store = STORE;
    fails_by_its_store(r, a, job, "x");
    for (mr_time end = r->now + GRACE(r); r->now < end - 1;) {
        assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
        rig_pass(r, MR_MIN(r->c.lease / 4, end - 1 - r->now));
        rig_step(r, &ev);
        fails_by_its_store(r, a, job, "x");
    }
    assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
    rig_pass(r, 1);
    fails_by_its_store(r, a, job, "x");
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
}

/* The store closes its session before the task fails. If the store is declared lost later, the loss
 * is a second event, which prolongs the retries of the task. */
static void the_loss_of_a_store_prolongs_the_retries(void **state)
{
    (void)state;
    for (int is_lost = 0; is_lost < 2; is_lost++) {
        struct rig *r = rig_new();
        rig_store(r, STORE, "n");
        rig_store_close(r, STORE);
        const struct rig_spec spec = {.name = "a"};
        struct rig_worker a = rig_join(r, &spec);
        struct mr_sched_event ev = {.type = MR_SCHED_STORE_CLOSED};
        ev.store.store = STORE;
        uint64_t job = rig_submit(r, "{\"tasks\":{\"x\":{\"op\":\"f\"}}}");
        fails_by_its_store(r, a, job, "x");
        for (mr_time end = r->now + GRACE(r); r->now < end;) {
            rig_pass(r, r->c.lease / 4);
            rig_heartbeat(r, a);
            if (!is_lost) rig_step(r, &ev); /* a store that is heard is not lost */
        }
        fails_by_its_store(r, a, job, "x");
        assert_int_equal(rig_job(r, job), is_lost ? MR_JOB_RUNNING : MR_JOB_FAILED);
        (void)rig_teardown(state);
    }
}

/* An object is on the disk of a store that is away. The store may come back with the object, or be
 * declared lost. Until then the tasks that need the object do not fail. */
static void a_stored_object_that_is_away_fails_nothing_at_once(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r);
    const struct mr_sched_resolved there = {
        .index = 0, .object = {7, 7}, .bytes = 9, .store = STORE};
    const struct mr_sched_submit more = {.resolved = &there, .resolved_count = 1};
    uint64_t job = rig_submit_with(r,
        "{\"tasks\":{\"o\":{\"name\":\"n\"},\"y\":{\"op\":\"f\",\"args\":[{\"ref\":\"o\"}]}},"
        "\"targets\":[\"y\"]}",
        &more);
    uint32_t o = rig_index(r, job, "o"), y = rig_index(r, job, "y");
    assert_int_equal(o, 0);
    for (int i = 0; i < 2; i++) {
        const struct mr_ws_missing gone = {
            {job}, y, rig_attempt(r, a, job, "y"), o, MR_STR("it is away")};
        struct mr_ws_up m = {.missing = &gone, .missing_count = 1};
        rig_message(r, a, &m);
        if (!i) {
            assert_int_equal(rig_job(r, job), MR_JOB_RUNNING);
            fails_by_its_store(r, a, job, "y"); /* the task is tried again */
            pass(r, a, GRACE(r));
        }
    }
    assert_int_equal(rig_job(r, job), MR_JOB_FAILED); /* no store has the object */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_task_that_a_store_failed_runs_again),
        RIG_TEST(what_fails_for_longer_than_a_store_is_away_fails_with_its_reason),
        RIG_TEST(a_long_task_that_no_store_serves_is_not_tried_for_ever),
        RIG_TEST(the_next_death_of_a_store_is_another),
        RIG_TEST(a_store_that_is_heard_does_not_prolong_the_retries),
        RIG_TEST(the_loss_of_a_store_prolongs_the_retries),
        RIG_TEST(a_stored_object_that_is_away_fails_nothing_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
