/* The worker's core: tasks that the scheduler sends again. The result of the earlier attempt is
 * gone, or an object that the result names is gone, or the earlier attempt has not ended. A task
 * may be marked as the last use of an input: the worker drops the input after that task. */
#include "tests/unit/worker/test.h"

static void cancel(struct rig *r, uint32_t index, uint32_t attempt)
{
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, index, attempt);
}

static void steal(struct rig *r, uint32_t index, uint32_t attempt)
{
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, index, attempt);
}

static void deliver(struct rig *r)
{
    rig_deliver(r);
    rig_turn(r);
}

/* Starts task `index` of an operator that blocks. */
static void start(struct rig *r, uint32_t index, uint32_t attempt)
{
    rig_task(r, RIG_JOB, index, attempt, OP_BLOCK, NULL);
    deliver(r);
}

/* Task 2 has an operator "by reference": its result holds the ids of its inputs. The scheduler
 * releases this result, and then sends task 2 again. The worker must run task 2 again and not
 * report the old result. */
static void a_reference_asked_for_again_is_made_again(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 1, OP_REF, INPUTS(1));
    /* Task 4 waits, so the value of task 2 is kept here. */
    rig_task(r, RIG_JOB, 4, 1, OP_INC, INPUTS(2, 3));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 1);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 2, 1);
    rig_deliver(r);
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 2, OP_REF, INPUTS(1));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(r->done[1].index, 2);
    assert_int_equal(r->done[1].attempt, 2);
    assert_int_equal(r->done[1].outcome, MR_OUTCOME_OK);
    rig_value(r, RIG_JOB, 3, 0);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->done[2].index, 4);
}

/* One message releases a value and sends its task again. The worker drops the value, runs the task
 * again, and must not report the old value. */
static void what_is_released_and_assigned_in_one_message_is_made_again(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 1);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_task(r, RIG_JOB, 1, 2, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->done[1].attempt, 2);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 3);
}

static void a_reference_that_an_older_attempt_made_is_not_told(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 1, OP_REF, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_deliver(r);
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 2, OP_REF, INPUTS(1));
    rig_deliver(r);
    rig_run_all(r); /* attempt 1 had begun, and succeeds */
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].attempt, 2);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_OK);
}

/* Attempt 2 waits for attempt 1 to stop. The last uses of inputs are those that the scheduler named
 * for attempt 2, not those of attempt 1. */
static void an_attempt_that_waits_for_another_has_its_own_last_uses(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 4, 1, OP_INC, INPUTS(9)); /* waits for input 9 */
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1, 1003));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_task(r, RIG_JOB, 2, 2, OP_SLOW, INPUTS(1001, 3));
    rig_deliver(r);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 2)->attempt, 2);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_OK);
    assert_false(mr_worker_keeps(r->w, RIG_JOB, 1));
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 3));
}

/* The scheduler sends a task again while its first attempt runs. The object of that run must be
 * reported as attempt 2, because the scheduler drops objects of attempt 1. */
static void what_was_sent_again_while_it_ran_is_told_of_as_the_later_attempt(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 4, 1, OP_INC, INPUTS(9)); /* waits for input 9 */
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1, 1003));
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 2, 2, OP_SLOW, INPUTS(1001, 3));
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    uint32_t starts = r->starts;
    rig_run_all(r);
    assert_int_equal(r->starts, starts);
    assert_int_equal(rig_find(r, 2)->attempt, 2);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_OK);
    assert_true(rig_find(r, 2)->is_object);
    assert_false(mr_worker_keeps(r->w, RIG_JOB, 1));
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 3));
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 2, 2);
    rig_deliver(r);
    assert_int_equal(r->drops, 1);
}

/* The scheduler has released the value, and a task here still needs it. Then the scheduler sends
 * the value's task again: the value made by the new attempt stays. */
static void a_value_that_is_asked_for_again_is_not_released(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1, 90));
    rig_deliver(r);
    rig_run_all(r);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_task(r, RIG_JOB, 1, 2, OP_INC, NULL);
    rig_value(r, RIG_JOB, 90, 0);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->done_count, 3);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
}

static void a_task_can_be_the_last_user_of_several_values(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 4; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 10, 1, OP_INC, INPUTS(1000, 1, 1002));
    rig_task(r, RIG_JOB, 11, 1, OP_INC, INPUTS(3, 1001));
    rig_deliver(r);
    rig_run_all(r);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(mr_worker_keeps(r->w, RIG_JOB, i), i == 3);
}

static void a_waiting_task_becomes_its_later_attempt(void **state)
{
    struct rig *r = *state;
    for (uint32_t attempt = 1; attempt <= 3; attempt += 2) {
        rig_task(r, RIG_JOB, 1, attempt, OP_BLOCK, INPUTS(90));
        deliver(r);
    }
    rig_task(r, RIG_JOB, 1, 2, OP_BLOCK, INPUTS(90)); /* attempt 2 is older and comes late */
    deliver(r);
    rig_value(r, RIG_JOB, 90, 0);
    deliver(r);
    assert_int_equal(r->strands[0]->items[0].attempt, 3);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].attempt, 3);
}

static void of_several_later_attempts_the_last_one_runs(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 1, 3);
    start(r, 1, 2);
    assert_int_equal(r->starts, 1);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->strands[0]->items[0].attempt, 3);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(r->done[0].attempt, 1);
    assert_int_equal(r->done[1].attempt, 3);
}

static void a_cancel_of_the_running_attempt_lets_the_later_one_run(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 1, 2);
    cancel(r, 1, 1);
    deliver(r);
    assert_int_equal(r->stops, 1);
    assert_int_equal(r->done_count, 0);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].attempt, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_CANCELLED);
    assert_int_equal(r->starts, 2);
    r->now += 2 * MR_WORKER_GRACE; /* the cancel of attempt 1 does not stop attempt 2 */
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    assert_false(r->lethal);
    rig_run(r, 0, MR_STRAND_STOPPED); /* attempt 2 stops without having been told to */
    rig_turn(r);
    assert_int_equal(r->done[1].outcome, MR_OUTCOME_CANCELLED);
    assert_int_equal(r->done[1].attempt, 2);
}

static void a_steal_of_the_later_attempt_gives_that_one_back(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 1, 2);
    steal(r, 1, 2);
    deliver(r);
    assert_int_equal(r->given, 1);
    assert_int_equal(r->given_rows[0].attempt, 2);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done[0].attempt, 1);
    assert_int_equal(r->given, 1);
}

static void a_steal_of_a_skipped_attempt_leaves_the_later_one(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(0));
    deliver(r);
    rig_task(r, RIG_JOB, 1, 2, OP_INC, INPUTS(0));
    deliver(r);
    struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 2);
    rig_result(r, &s->items[0], MR_STRAND_FAILED);
    rig_result(r, &s->items[1], MR_STRAND_SKIPPED);
    rig_report(r, s, 2);
    steal(r, 1, 1);
    deliver(r);
    assert_int_equal(r->given, 1);
    assert_int_equal(r->given_rows[0].attempt, 1);
    rig_task(r, RIG_JOB, 0, 2, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 1)->attempt, 2);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
}

static void a_drain_returns_the_later_attempt_and_lets_the_running_one_end(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 1, 2);
    r->m.down.drain = true;
    deliver(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].attempt, 2);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_RETURNED);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(r->done[1].attempt, 1);
    assert_int_equal(r->done[1].outcome, MR_OUTCOME_ERROR);
}

/* A new scheduler does not keep the running task. Later it sends the task with the same attempt
 * number. */
static void what_was_not_kept_may_come_again_with_its_number(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    r->restarts++;
    rig_register(r, 9);
    assert_int_equal(r->stops, 1);
    start(r, 1, 1);
    assert_int_equal(r->starts, 1);
    cancel(r, 9, 1);
    deliver(r);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->done_count, 0);
    assert_int_equal(r->starts, 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_OK);
}

/* The task waits for input 90 when its second attempt comes. The last uses of the second attempt
 * replace those of the first attempt. */
static void a_waiting_task_takes_the_last_uses_of_its_later_attempt(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 2, 1);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 3, 1, OP_BLOCK, INPUTS(1001, 2, 90));
    deliver(r);
    rig_task(r, RIG_JOB, 3, 2, OP_BLOCK, INPUTS(1, 1002, 90));
    deliver(r);
    rig_value(r, RIG_JOB, 90, 0);
    rig_deliver(r);
    rig_run_all(r);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
    assert_false(mr_worker_keeps(r->w, RIG_JOB, 2));
}

static void what_is_sent_twice_while_it_runs_runs_once(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 1, 1);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done_count, 1);
}

static void no_attempt_of_a_forgotten_job_runs(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 1, 2);
    r->m.forget[0] = RIG_JOB;
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 1;
    deliver(r);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done_count, 0);
    assert_null(mr_worker_leftover(r->w));
}

/* A running task reads a small value, which names objects that are gone. The value's task is sent
 * again, and the running task must keep the old bytes. */
static void a_running_task_keeps_the_bytes_of_its_inputs(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_REF, NULL);
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(1));
    deliver(r);
    const struct mr_strand_input *in = &r->strands[0]->items[0].inputs[0];
    assert_true(mr_str_eq(in->pack, MR_STR("\xc0")));
    rig_task(r, RIG_JOB, 1, 2, OP_REF, NULL);
    /* These values would overwrite the old bytes if the worker had freed them. */
    for (uint32_t i = 10; i < 30; i++)
        rig_value(r, RIG_JOB, i, 0);
    for (uint32_t i = 10; i < 30; i++)
        rig_task(r, RIG_JOB, 30 + i, 1, OP_BLOCK, INPUTS((int)i));
    deliver(r);
    assert_true(mr_str_eq(in->pack, MR_STR("\xc0")));
    rig_run_all(r);
    assert_int_equal(rig_find(r, 1)->attempt, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reference_asked_for_again_is_made_again),
        TEST(what_is_released_and_assigned_in_one_message_is_made_again),
        TEST(a_reference_that_an_older_attempt_made_is_not_told),
        TEST(an_attempt_that_waits_for_another_has_its_own_last_uses),
        TEST(what_was_sent_again_while_it_ran_is_told_of_as_the_later_attempt),
        TEST(a_value_that_is_asked_for_again_is_not_released),
        TEST(a_task_can_be_the_last_user_of_several_values),
        TEST(a_waiting_task_becomes_its_later_attempt),
        TEST(of_several_later_attempts_the_last_one_runs),
        TEST(a_cancel_of_the_running_attempt_lets_the_later_one_run),
        TEST(a_steal_of_the_later_attempt_gives_that_one_back),
        TEST(a_steal_of_a_skipped_attempt_leaves_the_later_one),
        TEST(a_drain_returns_the_later_attempt_and_lets_the_running_one_end),
        TEST(what_was_not_kept_may_come_again_with_its_number),
        TEST(a_waiting_task_takes_the_last_uses_of_its_later_attempt),
        TEST(what_is_sent_twice_while_it_runs_runs_once),
        TEST(no_attempt_of_a_forgotten_job_runs),
        TEST(a_running_task_keeps_the_bytes_of_its_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
