/* The worker's core: which tasks run together in one strand, which of their values are reported,
 * and how strands are split. A strand is a list of tasks that one executor runs back to back. A
 * value is used up if all tasks that use it have run in the strand that made it. No other process
 * needs a used-up value, so the worker drops it. */
#include "base/limits.h"
#include "tests/unit/worker/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define INPUTS(...) ((const int[]){__VA_ARGS__, -1})

static int setup(void **state)
{
    *state = rig_new(2);
    return 0;
}

static int setup_one(void **state)
{
    *state = rig_new(1);
    return 0;
}

static int teardown(void **state)
{
    rig_free((struct rig **)state);
    return 0;
}

/* Adds four tasks: x, exp(x), 1/x and the difference of the last two. All but the difference are
 * sent with their number of uses. */
static void diamond(struct rig *r, uint32_t first, uint32_t op)
{
    int x = (int)first;
    rig_task(r, RIG_JOB, first, 1, op, NULL);
    rig_uses(r, 2);
    rig_task(r, RIG_JOB, first + 1, 1, op, INPUTS(x));
    rig_uses(r, 1);
    rig_task(r, RIG_JOB, first + 2, 1, op, INPUTS(x));
    rig_uses(r, 1);
    rig_task(r, RIG_JOB, first + 3, 1, op, INPUTS(x + 1, x + 2));
}

static void a_chain_is_one_strand_of_which_only_the_end_has_a_value(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 10, OP_INC);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done_count, 10);
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_USED_UP);
    assert_int_equal(rig_find(r, 9)->outcome, MR_OUTCOME_OK);
}

static void what_is_used_up_leaves_nothing_behind(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 10, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    for (uint32_t i = 0; i < 10; i++) {
        rig_result(r, &s->items[i], MR_STRAND_DONE);
        if (i == 9) break;
        s->items[i].result.used = true; /* the executor has dropped the value */
        s->items[i].result.pack = MR_STR("");
    }
    rig_report(r, s, 10);
    rig_turn(r);
    assert_int_equal(r->drops, 0);
    for (uint32_t i = 0; i < 9; i++)
        assert_false(mr_worker_keeps(r->w, RIG_JOB, i));
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 9, 1);
    rig_deliver(r);
    assert_null(mr_worker_leftover(r->w));
}

static void a_diamond_of_short_tasks_is_one_strand(void **state)
{
    struct rig *r = *state;
    diamond(r, 0, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    for (uint32_t i = 0; i < 4; i++)
        assert_false(r->strands[0]->items[i].report);
    rig_run_all(r);
    assert_int_equal(r->starts, 1);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_USED_UP);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_OK);
}

static void an_idle_slot_takes_a_branch_of_a_diamond_of_long_tasks(void **state)
{
    struct rig *r = *state;
    diamond(r, 0, OP_SLOW);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 1);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    s->items[0].result.duration_ns = 10 * MR_MS;
    rig_report(r, s, 1);
    rig_turn(r);
    assert_true(s->items[0].report); /* two tasks wait for the value */
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[0]->items[0].index, 1);
    assert_int_equal(r->strands[1]->items[0].index, 2);
    /* The end of task 0 is reported, because tasks in two slots use its value. */
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_OK);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_OK);
}

static void a_branch_longer_than_a_hand_off_is_left_to_an_idle_slot(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 210 * MR_US);
    diamond(r, 0, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands[0]->count, 1);
}

static void a_branch_goes_along_while_the_idle_slots_have_other_work(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 210 * MR_US);
    for (uint32_t d = 0; d < 4; d++)
        diamond(r, 10 * d, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    assert_true(r->strands[0]->count >= 4);
    assert_int_equal(r->strands[0]->items[0].uses, 2);
    assert_int_equal(r->strands[0]->items[1].uses, 1);
    rig_run_all(r);
    uint32_t used_up = 0;
    for (uint32_t i = 0; i < r->done_count; i++)
        used_up += r->done[i].outcome == MR_OUTCOME_USED_UP;
    assert_true(used_up >= 8);
}

static void a_value_that_others_may_want_is_told(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL); /* the number of its uses is unknown */
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(0));
    rig_uses(r, 2); /* one of the two users is at another worker */
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 1);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_OK);
}

static void after_a_failure_what_it_needs_is_told_and_the_rest_is_used_up(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 5, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 5);
    for (uint32_t k = 0; k < 3; k++)
        rig_result(r, &s->items[k], MR_STRAND_DONE);
    rig_result(r, &s->items[3], MR_STRAND_FAILED);
    rig_result(r, &s->items[4], MR_STRAND_SKIPPED);
    rig_report(r, s, 5);
    rig_turn(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_USED_UP);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_USED_UP);
    /* The value of task 2 is reported, because a retry of task 3, which failed, needs it. */
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_OK);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_ERROR);
    assert_int_equal(rig_find(r, 3)->attempt, 1);
    assert_null(rig_find(r, 4));
}

static void a_value_reported_before_its_use_is_told(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 4, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    for (uint32_t k = 0; k < 4; k++)
        rig_result(r, &s->items[k], MR_STRAND_DONE);
    rig_report(r, s, 2);
    rig_turn(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_USED_UP);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    rig_report(r, s, 4);
    rig_turn(r);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_USED_UP);
}

static void what_is_stolen_from_a_strand_takes_the_value_along(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 3, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(s->count, 1);
    assert_int_equal(r->given, 1);
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_OK);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 0));
}

static void a_cancelled_item_of_a_strand_leaves_the_value_before_it(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 3, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(s->count, 2);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_USED_UP);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_CANCELLED);
}

static void a_later_attempt_of_what_runs_is_answered_with_its_value(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 2, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 0, 2, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_OK);
}

static void an_object_that_is_used_up_goes_at_once(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_uses(r, 1);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(0));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_USED_UP);
    assert_int_equal(r->drops, 1);
}

static void an_unfused_job_runs_and_tells_one_task_at_a_time(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 5, OP_INC);
    for (uint32_t i = 0; i < r->m.down.tasks.runs_count; i++)
        r->m.task_runs[i].unfused = true;
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 5);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_OK);
}

/* A strand used up a value, and the executor has dropped it. In the meantime the scheduler has sent
 * the task of that value again. */
static void what_has_no_value_any_more_and_is_wanted_runs_again(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 2, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_task(r, RIG_JOB, 0, 2, OP_INC, NULL);
    rig_deliver(r);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    rig_result(r, &s->items[1], MR_STRAND_DONE);
    s->items[0].result.pack = MR_STR("");
    s->items[0].result.used = true;
    rig_report(r, s, 2);
    assert_null(rig_find(r, 0));
    rig_run_all(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_OK);
    assert_int_equal(rig_find(r, 0)->attempt, 2);
    assert_int_equal(r->done_count, 2);
}

static void what_another_task_came_to_want_is_handed_back(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 2, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_task(r, RIG_JOB, 7, 1, OP_INC, INPUTS(0));
    rig_deliver(r);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    rig_result(r, &s->items[1], MR_STRAND_DONE);
    s->items[0].result.pack = MR_STR("");
    s->items[0].result.used = true;
    rig_report(r, s, 2);
    rig_turn(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_RETURNED);
    assert_int_equal(r->drops, 0); /* the executor has dropped the value already */
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
}

static void long_tasks_of_one_line_are_one_strand(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 3 * MR_MS);
    rig_chain(r, 5, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 5);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_USED_UP);
}

/* x has a value, so exp(x) and 1/x are both ready. One strand runs both and then their difference.
 */
static void an_input_that_is_ready_comes_along_while_nobody_idles(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 3 * MR_MS);
    for (uint32_t i = 0; i < 4; i++) {
        int e = (int)(100 + 3 * i);
        rig_task(r, RIG_JOB, 100 + 3 * i, 1, OP_INC, NULL);
        rig_uses(r, 1);
        rig_task(r, RIG_JOB, 101 + 3 * i, 1, OP_INC, NULL);
        rig_uses(r, 1);
        rig_task(r, RIG_JOB, 102 + 3 * i, 1, OP_INC, INPUTS(e, e + 1));
    }
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(r->strands[k]->count, 3);
        assert_int_equal(r->strands[k]->items[0].uses, 1);
        assert_int_equal(r->strands[k]->items[1].uses, 1);
    }
    rig_run_all(r);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(rig_find(r, 102 + 3 * i)->outcome, MR_OUTCOME_OK);
}

/* Returns the strand that begins with task `index`; NULL: there is no such strand. */
static struct mr_strand *strand_of(struct rig *r, uint32_t index)
{
    for (uint32_t i = 0; i < r->strands_count; i++)
        if (r->strands[i]->items[0].index == index) return r->strands[i];
    return NULL;
}

static void ends_that_only_tasks_here_wait_for_are_told_together(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 3 * MR_MS);
    for (uint32_t i = 0; i < 4; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_uses(r, 1);
    }
    /* Task 4 runs alone, so it is in no strand with its inputs. */
    rig_task(r, RIG_JOB, 4, 1, OP_BLOCK, INPUTS(0, 1, 2, 3));
    for (uint32_t i = 5; i < 9; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    for (uint32_t i = 0; i < 2; i++) {
        struct mr_strand *s = strand_of(r, i);
        rig_result(r, &s->items[0], MR_STRAND_DONE);
        rig_report(r, s, 1);
        rig_turn(r);
    }
    assert_int_equal(r->done_count, 0);
    mr_time until = mr_worker_deadline(r->w);
    assert_in_range(until - r->now, 3 * MR_MS, 10 * MR_MS);
    r->now = until;
    rig_turn(r);
    assert_int_equal(r->done_count, 2);
    /* The values of tasks 4 to 8 may have users elsewhere, so the ends of these tasks are sent. */
    rig_run_all(r);
    assert_int_equal(r->done_count, 9);
}

/* Sends tasks 0 to 3, which start; the argument `uses` becomes the field `uses` of each. Task 4 has
 * the values of tasks 0 to 3 as inputs. Task 5 has the value of task 4 as its input. */
static void four_and_one(struct rig *r, uint32_t uses)
{
    rig_measure(r, OP_INC, 3 * MR_MS);
    for (uint32_t i = 0; i < 4; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_uses(r, uses);
    }
    rig_task(r, RIG_JOB, 4, 1, OP_BLOCK, INPUTS(0, 1, 2, 3));
    rig_task(r, RIG_JOB, 5, 1, OP_INC, INPUTS(4));
    rig_deliver(r);
    rig_turn(r);
}

static void reports_need_not_wake_until_the_last_input_of_what_waits(void **state)
{
    struct rig *r = *state;
    four_and_one(r, 1);
    assert_int_equal(mr_worker_wake_after(r->w), 4);
    struct mr_strand *s = strand_of(r, 0);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(mr_worker_wake_after(r->w), 3);
}

static void what_is_ready_does_not_wake_for_the_scheduler(void **state)
{
    struct rig *r = *state;
    four_and_one(r, 1);
    /* Task 6 is ready, but the strands of tasks 0 to 3 hold both slots. */
    rig_task(r, RIG_JOB, 6, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    assert_int_equal(mr_worker_wake_after(r->w), 1);
}

static void a_task_costs_what_its_op_has_taken_since_it_came(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 100 * MR_US);
    rig_task(r, RIG_JOB, 0, 1, OP_BLOCK, NULL);
    for (uint32_t i = 1; i <= 8; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, INPUTS(0));
    rig_task(r, RIG_JOB, 9, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = strand_of(r, 9);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    s->items[0].result.duration_ns = 80 * MR_MS;
    rig_report(r, s, 1);
    s = strand_of(r, 0);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    rig_report(r, s, 1);
    rig_turn(r);
    /* If the core still used the run time that the operator had before task 9, it would have begun
     * two strands of four tasks each. */
    assert_int_equal(strand_of(r, 1)->count, 1);
    assert_int_equal(strand_of(r, 2)->count, 1);
    rig_run_all(r);
    assert_int_equal(r->done_count, 10);
}

static void who_is_wanted_elsewhere_wakes_at_once(void **state)
{
    struct rig *r = *state;
    four_and_one(r, 2); /* one of the two users of each value is at another worker */
    /* Each value has a user elsewhere, so the first task that ends is reported at once. */
    assert_int_equal(mr_worker_wake_after(r->w), 0);
    /* The second user of each value comes to this worker. Each of tasks 0 to 3 that ends now lets a
     * new task start. */
    for (int i = 0; i < 4; i++)
        rig_task(r, RIG_JOB, 6 + (uint32_t)i, 1, OP_INC, INPUTS(i));
    rig_deliver(r);
    assert_int_equal(mr_worker_wake_after(r->w), 1);
}

static void what_a_loop_looks_at_is_told_late_unless_it_is_true(void **state)
{
    struct rig *r = *state;
    static const char yes = (char)0xc3;
    four_and_one(r, 1 | MR_USES_OF_LOOP);
    assert_int_equal(mr_worker_wake_after(r->w), 4);
    for (uint32_t i = 0; i < 2; i++) {
        struct mr_strand *s = strand_of(r, i);
        assert_int_equal(s->items[0].uses, 0); /* a value that a loop reads is never used up */
        rig_result(r, &s->items[0], MR_STRAND_DONE);
        if (i) s->items[0].result.pack = mr_str_of(&yes, 1);
        rig_report(r, s, 1);
        rig_turn(r);
        assert_int_equal(r->done_count, i ? 2 : 0);
    }
}

static void an_idle_slot_looks_at_what_a_long_strand_has_run(void **state)
{
    struct rig *r = *state;
    diamond(r, 0, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 4);
    assert_int_equal(r->looks, 0);
    r->now += 100 * MR_US;
    rig_turn(r);
    assert_int_equal(r->looks, 1);
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    /* The executor answers: item 0 has ended, so item 1 runs. */
    rig_report(r, s, 1);
    r->now += 100 * MR_US;
    rig_turn(r);
    assert_true(r->takes >= 1);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[1]->items[0].index, 2);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_OK);
}

static void looks_at_a_strand_become_rarer(void **state)
{
    struct rig *r = *state;
    diamond(r, 0, OP_INC);
    rig_deliver(r);
    for (uint32_t i = 0; i < 1000; i++) {
        r->now += 10 * MR_US;
        rig_turn(r);
    }
    assert_in_range(r->looks, 4, 10);
}

static void one_slot_alone_looks_at_nothing(void **state)
{
    struct rig *r = *state;
    diamond(r, 0, OP_INC);
    rig_deliver(r);
    r->now += MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->looks, 0);
    assert_int_equal(r->strands[0]->count, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_chain_is_one_strand_of_which_only_the_end_has_a_value),
        TEST(what_is_used_up_leaves_nothing_behind),
        TEST(a_diamond_of_short_tasks_is_one_strand),
        TEST(an_idle_slot_takes_a_branch_of_a_diamond_of_long_tasks),
        TEST(a_branch_longer_than_a_hand_off_is_left_to_an_idle_slot),
        TEST(a_branch_goes_along_while_the_idle_slots_have_other_work),
        TEST(a_value_that_others_may_want_is_told),
        TEST(after_a_failure_what_it_needs_is_told_and_the_rest_is_used_up),
        TEST(a_value_reported_before_its_use_is_told),
        TEST(what_is_stolen_from_a_strand_takes_the_value_along),
        TEST(a_cancelled_item_of_a_strand_leaves_the_value_before_it),
        TEST(a_later_attempt_of_what_runs_is_answered_with_its_value),
        TEST(an_object_that_is_used_up_goes_at_once),
        TEST(an_unfused_job_runs_and_tells_one_task_at_a_time),
        TEST(what_has_no_value_any_more_and_is_wanted_runs_again),
        TEST(what_another_task_came_to_want_is_handed_back),
        TEST(long_tasks_of_one_line_are_one_strand),
        TEST(an_input_that_is_ready_comes_along_while_nobody_idles),
        TEST(ends_that_only_tasks_here_wait_for_are_told_together),
        TEST(reports_need_not_wake_until_the_last_input_of_what_waits),
        TEST(what_is_ready_does_not_wake_for_the_scheduler),
        TEST(a_task_costs_what_its_op_has_taken_since_it_came),
        TEST(who_is_wanted_elsewhere_wakes_at_once),
        TEST(what_a_loop_looks_at_is_told_late_unless_it_is_true),
        TEST(an_idle_slot_looks_at_what_a_long_strand_has_run),
        TEST(looks_at_a_strand_become_rarer),
        cmocka_unit_test_setup_teardown(one_slot_alone_looks_at_nothing, setup_one, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
