/* The worker's core: tasks that do not end by themselves: they are cancelled or stolen, run into
 * their timeout, or lose an input. A strand is a list of tasks that one
 * executor runs in order. A cut ends a strand early: its last tasks, which have not begun, go back
 * to the queue. */
#include "tests/unit/worker/test.h"

static void a_waiting_task_is_cancelled_at_once(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_CANCELLED);
}

static void a_cancel_of_something_unknown_is_answered_unknown(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 2, 2, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 7, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, (mr_job_id){99}, 7, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->unknown, 3);
    assert_int_equal(r->done_count, 0);
}

static void a_steal_of_what_was_made_meanwhile_is_answered_by_its_completion(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 2, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_run_all(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 2, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_deliver(r);
    rig_turn(r);
    /* with "unknown" the scheduler would believe that the value is gone */
    assert_int_equal(r->unknown, 0);
}

static void a_running_task_gets_its_cancel_flag_and_queued_ones_never_start(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 10; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands[0]->count, 10); /* ten tasks are too little work for both slots */
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 0, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 5, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    assert_int_equal(rig_find(r, 5)->outcome, MR_OUTCOME_CANCELLED);
    assert_null(rig_find(r, 0));
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_STOPPED);
    for (uint32_t i = 1; i < s->count; i++)
        rig_result(r, &s->items[i], MR_STRAND_DONE);
    rig_report(r, s, s->count);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_CANCELLED);
    assert_int_equal(r->done_count, 10);
}

static void a_cancelled_task_that_finishes_first_is_done(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_OK);
}

static void a_new_attempt_waits_for_the_end_of_the_cancelled_one(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_task(r, RIG_JOB, 1, 2, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->starts, 1);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_run_all(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_CANCELLED);
    assert_int_equal(r->done[0].attempt, 1);
    assert_int_equal(r->done[1].outcome, MR_OUTCOME_OK);
    assert_int_equal(r->done[1].attempt, 2);
}

static void a_task_that_ignores_its_flag_costs_the_process(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    r->now += MR_WORKER_GRACE - 1;
    rig_turn(r);
    assert_false(r->lethal);
    assert_true(mr_worker_deadline(r->w) <= r->now + 1);
    r->now += 1;
    rig_turn(r);
    assert_true(r->lethal);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_CANCELLED);
    /* Task 2 ran, and task 3 waited. Both are returned, because they did nothing wrong. */
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_RETURNED);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_RETURNED);
    assert_int_equal(r->done_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(r->done[i].code, MR_OK); /* no task has an error */
    assert_true(r->leaving);
    /* The executors finish too late: the worker has already reported the end of each task. */
    rig_run(r, 0, MR_STRAND_DONE);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->done_count, 3);
}

static void a_timeout_stops_the_attempt(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_extra(r)->timeout_ns = 3 * MR_SECOND;
    rig_deliver(r);
    rig_turn(r);
    r->now += 3 * MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_TIMEOUT);
    assert_int_equal(r->done[0].code, MR_ETIMEOUT);
}

/* A cancelled task has ended, but its executor's report is late, because the next task of the
 * strand runs. The worker must not kill that next task. */
static void what_has_ended_is_not_killed_for_what_runs_behind_it(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 6; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    assert_true(s->count >= 3);
    uint32_t ended = s->items[0].index, runs = s->items[1].index;
    r->hold_cuts = true;
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, ended, 1);
    rig_deliver(r);
    rig_turn(r);
    /* Two items had begun. */
    struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {s->id, 2}};
    rig_step(r, &cut);
    rig_turn(r);
    assert_int_equal(r->stops, 0);
    r->now += 2 * MR_WORKER_GRACE;
    rig_turn(r);
    assert_false(r->lethal);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, runs, 1);
    rig_deliver(r);
    rig_turn(r);
    cut.cut.count = 2;
    rig_step(r, &cut);
    rig_turn(r);
    assert_int_equal(r->stops, 1); /* only the item that runs is told to stop */
    assert_true(r->stopped[1]);
    assert_false(r->stopped[0]);
}

/* The tasks of an operator took a short time so far, and now one of them runs for long. Behind this
 * task, a client submits and cancels one small task after another. Strands from which a cut took
 * all tasks stay in the executor's inbox. The worker must give the executor no more strands than
 * its inbox has room for. */
static void what_is_cancelled_behind_a_running_task_fills_no_inbox(void **state)
{
    struct rig *r = *state;
    r->is_behind = true;
    for (uint32_t i = 0; i < 8; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    /* These runs tell the core that tasks of this operator take a short time. */
    rig_run_all(r);
    uint32_t before = r->starts, done = r->done_count;
    for (uint32_t i = 100; i < 102; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL); /* these two tasks run for long */
        rig_deliver(r);
        rig_turn(r);
    }
    assert_int_equal(r->starts, before + 2);
    for (uint32_t i = 200; i < 240; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_deliver(r);
        rig_turn(r);
        rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, i, 1);
        rig_deliver(r);
        rig_turn(r);
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_CANCELLED);
    }
    assert_true(r->starts - before <= 2 * MR_SLOT_STRANDS_MAX);
    rig_task(r, RIG_JOB, 300, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    /* Task 300 stays in the core's queue, where a steal can take it. */
    assert_int_equal(r->strands_count, 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_let_go_all(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, done + 43);
    assert_int_equal(rig_find(r, 300)->outcome, MR_OUTCOME_OK);
}

static void a_steal_takes_what_has_not_started(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 10; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 20, 1, OP_INC, INPUTS(19));
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 0, 1);  /* task 0 runs */
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 7, 1);  /* task 7 waits in a strand */
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 20, 1); /* task 20 waits for an input */
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 33, 1); /* task 33 was never sent here */
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->started, 1);
    assert_int_equal(r->given, 2);
    assert_int_equal(r->unknown, 1);
    rig_run_all(r);
    assert_int_equal(r->done_count, 9);
    assert_null(rig_find(r, 7));
}

static void a_steal_that_crosses_the_report_is_answered_started(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    r->hold_cuts = true;
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    struct mr_worker_event report = {.kind = MR_WORKER_REPORT, .report = {s->id, 1, true}};
    rig_step(r, &report);
    mr_worker_check(r->w);
    struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {s->id, 1}};
    rig_remove(r, s->id);
    rig_step(r, &cut);
    rig_turn(r);
    assert_int_equal(r->started, 1);
    assert_int_equal(r->given, 0);
    assert_int_equal(r->done_count, 1);
}

static void an_item_whose_maker_failed_waits_again(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(0));
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 2);
    rig_result(r, &s->items[0], MR_STRAND_FAILED);
    rig_result(r, &s->items[1], MR_STRAND_SKIPPED);
    rig_report(r, s, 2);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    rig_task(r, RIG_JOB, 0, 2, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    assert_int_equal(r->done_count, 3);
}

static void an_answer_to_a_cut_that_nobody_asked_for_is_ignored(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 5; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {s->id, 1}};
    rig_step(r, &cut);
    assert_int_equal(s->count, 5);
    rig_run_all(r);
    assert_int_equal(r->done_count, 5);
}

static void a_heartbeat_does_not_list_what_nobody_wants_any_more(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 7, 1, OP_SLOW, NULL);
    rig_task(r, (mr_job_id){6}, 8, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    r->m.forget[0] = RIG_JOB;
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 1;
    rig_deliver(r);
    r->now += MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->heartbeat.running, 2);
    assert_int_equal(r->heartbeat.running_tasks.count, 1);
    assert_int_equal(r->heartbeat.running_tasks.index[0], 8);
    assert_int_equal(r->heartbeat.running_tasks.runs[0].job.v, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_waiting_task_is_cancelled_at_once),
        TEST(a_cancel_of_something_unknown_is_answered_unknown),
        TEST(a_steal_of_what_was_made_meanwhile_is_answered_by_its_completion),
        TEST(a_running_task_gets_its_cancel_flag_and_queued_ones_never_start),
        TEST(a_cancelled_task_that_finishes_first_is_done),
        TEST(a_new_attempt_waits_for_the_end_of_the_cancelled_one),
        TEST(a_task_that_ignores_its_flag_costs_the_process),
        TEST(a_timeout_stops_the_attempt),
        TEST(what_has_ended_is_not_killed_for_what_runs_behind_it),
        TEST(what_is_cancelled_behind_a_running_task_fills_no_inbox),
        TEST(a_steal_takes_what_has_not_started),
        TEST(a_steal_that_crosses_the_report_is_answered_started),
        TEST(an_item_whose_maker_failed_waits_again),
        TEST(an_answer_to_a_cut_that_nobody_asked_for_is_ignored),
        TEST(a_heartbeat_does_not_list_what_nobody_wants_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
