/* The worker's core: how a worker ends. Its incarnation is revoked, or it drains (takes no new
 * tasks and ends after those that run), or a task ignores the request to stop. */
#include "tests/unit/worker/test.h"

static uint64_t incarnation; /* the incarnation in the last Register */

static void hear(struct rig *r, const struct mr_ws_up *up)
{
    (void)r;
    if (up->reg) incarnation = up->reg->incarnation;
}

static void cancel(struct rig *r, uint32_t index)
{
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, index, 1);
}

static void deliver(struct rig *r)
{
    rig_deliver(r);
    rig_turn(r);
}

/* Starts a task of an operator that blocks. */
static void start(struct rig *r)
{
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    deliver(r);
}

static void a_revoked_worker_asks_for_a_new_incarnation_and_tells_nothing_old(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    rig_value(r, RIG_JOB, 20, 1);
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(20));
    /* Task 3 waits, and loses its input too. */
    rig_task(r, RIG_JOB, 3, 1, OP_BLOCK, INPUTS(20, 90));
    deliver(r);
    r->connected = false;
    rig_run(r, 0, MR_STRAND_FAILED);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
    s->items[0].result.message = MR_STR("gone");
    rig_report(r, s, 1);
    rig_event(r, MR_WORKER_REVOKED);
    rig_connect(r);
    assert_int_equal(incarnation, 0);
    rig_register(r, 10);
    assert_int_equal(r->done_count, 0);
    assert_int_equal(r->missing, 0);
    assert_null(mr_worker_leftover(r->w));
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(incarnation, 10);
}

/* No scheduler takes the last completions of the draining worker. The worker ends one second after
 * its last task has ended. */
static void a_drained_worker_does_not_wait_for_ever(void **state)
{
    struct rig *r = *state;
    start(r);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_event(r, MR_WORKER_DRAIN);
    rig_turn(r);
    r->now += 10 * MR_SECOND;
    rig_turn(r);
    assert_false(r->hung_up);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_false(r->hung_up);
    assert_int_equal(mr_worker_deadline(r->w), r->now + MR_SECOND);
    r->now += MR_SECOND - 1;
    rig_turn(r);
    assert_false(r->hung_up);
    r->now++;
    rig_turn(r);
    assert_true(r->hung_up);
    r->hung_up = false;
    uint32_t connects = r->connects;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_turn(r);
    assert_true(mr_worker_deadline(r->w) > r->now + MR_SECOND);
    r->now += 10 * MR_SECOND;
    rig_turn(r);
    assert_false(r->hung_up); /* the worker hangs up only once */
    assert_int_equal(r->connects, connects);
}

static void a_drained_worker_that_has_told_all_ends_at_once(void **state)
{
    struct rig *r = *state;
    rig_event(r, MR_WORKER_DRAIN);
    assert_false(r->hung_up);
    rig_turn(r);
    assert_true(r->leaving);
    assert_true(r->hung_up);
}

/* A draining worker tells each scheduler once that it is leaving. */
static void a_draining_worker_says_so_in_each_session(void **state)
{
    struct rig *r = *state;
    start(r);
    rig_event(r, MR_WORKER_DRAIN);
    rig_turn(r);
    assert_true(r->leaving);
    assert_int_equal(r->takes, 1);
    r->leaving = false;
    cancel(r, 9);
    r->m.down.drain = true; /* the request to drain is repeated */
    deliver(r);
    assert_false(r->leaving);
    assert_int_equal(r->takes, 1);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, 1, 1);
    rig_register(r, 9);
    assert_true(r->leaving);
    assert_false(r->hung_up);
}

/* One slot has two tasks. The first task runs and does not stop when it is cancelled. So the worker
 * returns the second task, which has not started, to the scheduler. */
static void what_waits_behind_a_task_that_does_not_stop_is_returned(void **state)
{
    (void)state;
    struct rig *r = rig_new(1);
    rig_measure(r, OP_INC, MR_US);
    for (uint32_t i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        deliver(r);
    }
    assert_int_equal(r->strands_count, 2);
    r->hold_cuts = true;
    cancel(r, 0);
    deliver(r);
    struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {r->strands[0]->id, 1}};
    rig_step(r, &cut);
    assert_int_equal(r->stops, 1);
    r->now += MR_WORKER_GRACE;
    rig_turn(r);
    assert_true(r->lethal);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_CANCELLED);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_RETURNED);
    rig_free(&r);
}

static void a_task_that_nobody_wants_and_that_does_not_stop_costs_the_process(void **state)
{
    struct rig *r = *state;
    start(r);
    r->m.forget[0] = RIG_JOB;
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 1;
    deliver(r);
    assert_int_equal(r->stops, 1);
    r->now += MR_WORKER_GRACE;
    rig_turn(r);
    assert_true(r->lethal);
    assert_int_equal(r->done_count, 0);
}

/* A drain takes back a task that would have been the last user of a value. The value stays, because
 * the task will run at another worker. */
static void a_task_that_a_drain_returns_has_not_used_its_inputs(void **state)
{
    struct rig *r = *state;
    start(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(1001, 90));
    rig_deliver(r);
    rig_event(r, MR_WORKER_DRAIN);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_revoked_worker_asks_for_a_new_incarnation_and_tells_nothing_old),
        TEST(a_drained_worker_does_not_wait_for_ever),
        TEST(a_drained_worker_that_has_told_all_ends_at_once),
        TEST(a_draining_worker_says_so_in_each_session),
        cmocka_unit_test(what_waits_behind_a_task_that_does_not_stop_is_returned),
        TEST(a_task_that_nobody_wants_and_that_does_not_stop_costs_the_process),
        TEST(a_task_that_a_drain_returns_has_not_used_its_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
