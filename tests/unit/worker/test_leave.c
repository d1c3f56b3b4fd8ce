/* The worker's core: tasks that leave their slot, because they wait for jobs that they have
 * submitted. They then occupy a place for long-running tasks. A cut takes the tasks that have not
 * begun off the end of a strand (a list of tasks that one executor runs in order). */
#include "tests/unit/worker/test.h"

#include "base/limits.h"

static void leave(struct rig *r, uint32_t index, uint32_t attempt)
{
    rig_ref(&r->m.down.leave, &r->m.leave, RIG_JOB, index, attempt);
    rig_deliver(r);
    rig_turn(r);
}

static struct mr_strand *strand_with(struct rig *r, uint32_t index)
{
    for (uint32_t i = 0; i < r->strands_count; i++)
        for (uint32_t k = r->strands[i]->reported; k < r->strands[i]->count; k++)
            if (r->strands[i]->items[k].index == index) return r->strands[i];
    return NULL;
}

/* A task leaves its slot. The task's executor leaves the slot, too, and keeps the cancelled strands
 * that wait behind the task. */
static void a_task_that_leaves_takes_along_what_was_cancelled_behind_it(void **state)
{
    struct rig *r = *state;
    r->is_behind = true;
    for (uint32_t i = 0; i < 8; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    /* Two tasks run. Each of the four other tasks is cancelled before it begins, and its empty
     * strand stays in an executor's inbox. */
    for (uint32_t i = 100; i < 106; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_deliver(r);
        rig_turn(r);
        if (i > 101) rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, i, 1);
        rig_deliver(r);
        rig_turn(r);
    }
    assert_int_equal(r->cut_away_count, 4);
    leave(r, 100, 1);
    assert_int_equal(r->moves, 1);
    /* The slot has a new executor. The executor's inbox is empty and has room for
     * MR_SLOT_STRANDS_MAX strands. */
    for (uint32_t i = 200; i < 200 + MR_SLOT_STRANDS_MAX; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_deliver(r);
        rig_turn(r);
    }
    rig_let_go_all(r);
    mr_worker_check(r->w);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 100)->outcome, MR_OUTCOME_OK);
    assert_int_equal(r->done_count, 8 + 6 + MR_SLOT_STRANDS_MAX);
}

static void a_task_that_leaves_its_slot_makes_room_for_another(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 3; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    uint32_t slot = strand_with(r, 0)->slot;
    leave(r, 0, 1);
    assert_int_equal(r->moves, 1);
    assert_int_equal(r->left, 1);
    assert_int_equal(r->takes, 0); /* no items stand behind task 0, so no cut is needed */
    assert_true(strand_with(r, 0)->slot >= 2);
    assert_int_equal(strand_with(r, 2)->slot, slot);
    /* A repeated Leave is answered again and moves nothing. */
    leave(r, 0, 1);
    assert_int_equal(r->moves, 1);
    assert_int_equal(r->left, 2);
    while (r->strands_count)
        rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->done_count, 3);
}

static void what_stands_behind_a_task_that_leaves_is_taken_back_first(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 400; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = strand_with(r, 0);
    uint32_t slot = s->slot;
    assert_true(s->count > 1);
    leave(r, 0, 1);
    rig_turn(r);
    assert_int_equal(r->takes, 1);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 1);
    assert_int_equal(r->moves, 1);
    assert_int_equal(r->left, 1);
    assert_ptr_equal(strand_with(r, 0), s);
    assert_int_equal(s->count, 1);
    assert_true(s->slot >= 2);
    assert_int_equal(strand_with(r, 1)->slot, slot);
    while (r->strands_count) {
        /* The task that left its slot ends last. */
        rig_run(r, r->strands_count - 1, MR_STRAND_DONE);
        rig_turn(r);
    }
    assert_int_equal(r->done_count, 400);
}

static void a_cancelled_task_that_left_its_slot_is_stopped(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    leave(r, 0, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 0, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_CANCELLED);
}

static void what_left_its_slot_is_said_again_to_a_new_scheduler(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_BLOCK, NULL);
    /* task 1 takes the first place for long-running tasks */
    rig_task(r, RIG_JOB, 1, 1, OP_ROLE, NULL);
    rig_deliver(r);
    rig_turn(r);
    leave(r, 0, 1);
    assert_int_equal(r->left, 1);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->queued, 2);
    for (uint32_t i = 0; i < 2; i++)
        rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, i, 1);
    rig_register(r, 9);
    assert_int_equal(r->left, 2);
    assert_int_equal(r->moves, 1);
}

static void only_what_runs_can_leave_and_what_is_long_has_left(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_ROLE, NULL);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(7)); /* task 1 waits for input 7 */
    rig_deliver(r);
    rig_turn(r);
    leave(r, 0, 1);
    assert_int_equal(r->left, 1);
    leave(r, 1, 1);
    leave(r, 0, 2);
    leave(r, 99, 1);
    assert_int_equal(r->left, 1);
    assert_int_equal(r->moves, 0);
}

/* The end of task 0, which left its slot, is reported at once, although its only dependent, task 1,
 * is on the same worker. Otherwise the scheduler would believe that task 1 still waits for its
 * input, and might take the worker for empty while task 1 runs. */
static void the_end_of_what_left_its_slot_is_told_at_once(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_BLOCK, NULL);
    rig_uses(r, 1);
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, INPUTS(0));
    for (uint32_t i = 2; i < 9; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    leave(r, 0, 1);
    assert_int_equal(r->moves, 1);
    struct mr_strand *s = strand_with(r, 0);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].index, 0);
    while (r->strands_count) {
        rig_run(r, 0, MR_STRAND_DONE);
        rig_turn(r);
    }
}

/* All places for long-running tasks are taken, so the task cannot leave its slot yet. */
static void a_task_that_finds_no_place_stays_in_its_slot_until_there_is_one(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_US);
    for (uint32_t i = 0; i < MR_LONG_TASKS_MAX + 1; i++)
        rig_task(r, RIG_JOB, 1000 + i, 1, OP_ROLE, NULL);
    for (uint32_t i = 0; i < 2; i++)
        rig_task(r, RIG_JOB, i, 1, i ? OP_INC : OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, MR_LONG_TASKS_MAX + 2);
    leave(r, 1, 1);
    assert_int_equal(r->moves + r->left, 0);
    /* Task 2 waits for the slot, but not in a strand behind task 1. */
    rig_task(r, RIG_JOB, 2, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_null(strand_with(r, 2));
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 1000 + MR_LONG_TASKS_MAX, 1);
    rig_deliver(r); /* the cancelled task had no place, so no place becomes free */
    for (uint32_t i = 0; i < r->strands_count; i++) {
        if (r->strands[i]->items[0].index != 1000) continue;
        rig_run(r, i, MR_STRAND_DONE);
        break;
    }
    rig_turn(r);
    assert_int_equal(r->moves, 1);
    assert_int_equal(r->left, 1);
    assert_int_equal(r->last[MR_WORKER_MOVE].move.to, strand_with(r, 1)->slot);
    assert_int_equal(r->last[MR_WORKER_MOVE].move.from, strand_with(r, 2)->slot);
    assert_true(strand_with(r, 1)->slot >= 2);
}

/* A task that has to run alone leaves its slot. From then on other tasks may start. */
static void a_lone_task_that_leaves_its_slot_lets_others_start(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_BLOCK, NULL);
    rig_extra(r)->alone = true;
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    leave(r, 0, 1);
    assert_int_equal(r->strands_count, 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    for (uint32_t i = 2; i < 4; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
        if (i == 2) rig_extra(r)->alone = true;
        rig_deliver(r);
        rig_turn(r);
    }
    assert_int_equal(r->strands_count, 1);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->items[0].index, 2);
}

/* A task leaves its slot. The strand behind the task is taken back, so that the strand can run
 * while the task waits. */
static void a_task_that_leaves_does_not_wait_for_the_strand_behind_it(void **state)
{
    (void)state;
    struct rig *r = rig_new(1);
    rig_measure(r, OP_INC, MR_US);
    for (uint32_t i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_deliver(r);
        rig_turn(r);
    }
    assert_int_equal(r->strands_count, 2);
    leave(r, 0, 1);
    assert_int_equal(r->moves, 1);
    rig_turn(r);
    assert_int_equal(strand_with(r, 1)->slot, 0);
    assert_int_equal(strand_with(r, 0)->slot, 1);
    rig_free(&r);
}

/* A cancel made the core cut the task's strand. The task ended before the executor answered the
 * cut. The next Register does not say again that the task has left its slot. */
static void what_left_and_has_ended_is_not_said_again(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    leave(r, 0, 1);
    r->hold_cuts = true;
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 0, 1);
    rig_deliver(r);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_register(r, 9);
    assert_int_equal(r->left, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_end_of_what_left_its_slot_is_told_at_once),
        TEST(a_task_that_leaves_its_slot_makes_room_for_another),
        TEST(a_task_that_leaves_takes_along_what_was_cancelled_behind_it),
        TEST(what_stands_behind_a_task_that_leaves_is_taken_back_first),
        TEST(a_cancelled_task_that_left_its_slot_is_stopped),
        TEST(what_left_its_slot_is_said_again_to_a_new_scheduler),
        TEST(only_what_runs_can_leave_and_what_is_long_has_left),
        TEST(a_task_that_finds_no_place_stays_in_its_slot_until_there_is_one),
        TEST(a_lone_task_that_leaves_its_slot_lets_others_start),
        cmocka_unit_test(a_task_that_leaves_does_not_wait_for_the_strand_behind_it),
        TEST(what_left_and_has_ended_is_not_said_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
