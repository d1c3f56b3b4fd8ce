/* The worker's core: results that refer to other values, asked for again because those values are
 * gone. */
#include "tests/unit/worker/test.h"

/* The scheduler releases a result by reference and then sends its task again. The worker must run
 * the task again and not report the old result. */
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

/* One message releases a value and sends its task again. The worker must run the task again, and
 * must not report the old value, which it drops. */
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
    rig_run_all(r); /* the first attempt had begun, and ends well */
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

/* The scheduler has released the value, which a task here still needs, and asks for it again. */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
