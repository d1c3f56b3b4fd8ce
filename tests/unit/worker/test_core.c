/* The worker's core: its main rules, one in each test. */
#include "tests/unit/worker/test.h"

static void register_is_the_first_message_of_a_stream(void **state)
{
    struct rig *r = *state;
    assert_int_equal(r->registers, 1);
    assert_int_equal(r->connects, 1);
    assert_int_equal(r->held, 0);
    assert_int_equal(r->heartbeats, 1);
}

static void a_task_without_inputs_starts_and_is_reported(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->items[0].op, OP_INC - 1);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_OK);
    assert_int_equal(r->done[0].attempt, 1);
}

static void a_task_starts_when_its_last_input_comes_in_a_later_message(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 0);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(1, 2));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    rig_value(r, RIG_JOB, 2, 0);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    const struct mr_strand_item *item = &r->strands[0]->items[0];
    assert_int_equal(item->inputs_count, 2);
    assert_int_equal(item->inputs[1].kind, MR_STRAND_PACK);
    assert_int_equal(item->inputs[1].pack.n, 1);
}

static void a_chain_of_tiny_tasks_is_one_strand(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL);
    for (int i = 1; i < 200; i++)
        rig_task(r, RIG_JOB, (uint32_t)i, 1, OP_INC, INPUTS(1000 + i - 1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 200);
    assert_int_equal(r->strands[0]->items[7].inputs[0].kind, MR_STRAND_ITEM);
    assert_int_equal(r->strands[0]->items[7].inputs[0].item, 6);
    assert_int_equal(r->takes, 0); /* no part of the chain could run in the idle slot */
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->done_count, 200);
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(r->done[i].index, i);
}

static void ready_tasks_are_shared_between_idle_slots(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 400; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_true(r->strands_count >= 2);
    assert_int_equal(r->strands[0]->count, 200);
    assert_int_not_equal(r->strands[0]->slot, r->strands[1]->slot);
}

static void the_higher_priority_then_the_lower_order_goes_first(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 4, 1, OP_SLOW, NULL);
    r->m.order[0] = 9;
    r->m.priority[3] = 5;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands[0]->items[0].index, 4);
    assert_int_equal(r->strands[1]->items[0].index, 2);
}

static void an_idle_slot_takes_what_another_has_not_started(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 400; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    uint32_t before = r->strands[1]->count;
    assert_true(before >= 200);
    rig_run(r, 0, MR_STRAND_DONE);
    r->now += MR_MS;
    rig_turn(r);
    assert_true(r->takes >= 1);
    assert_int_equal(r->strands_count, 2);
    assert_true(r->strands[0]->count < before);
}

static void a_duplicate_assignment_is_harmless(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(0));
        rig_deliver(r);
    }
    rig_value(r, RIG_JOB, 0, 0);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done_count, 1);
}

static void an_assignment_of_what_is_held_is_answered_not_run(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 1, 2, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(r->done[1].attempt, 1);
}

static void an_object_asked_for_again_is_made_again(void **state)
{
    struct rig *r = *state;
    for (uint32_t attempt = 1; attempt <= 2; attempt++) {
        rig_task(r, RIG_JOB, 1, attempt, OP_INC, NULL);
        rig_extra(r)->want_object = true;
        rig_deliver(r);
        rig_run_all(r);
    }
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->drops, 1);
    assert_int_equal(r->done[1].attempt, 2);
    assert_true(r->done[1].is_object);
}

static void a_last_use_drops_the_value_after_success(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1001));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->drops, 1);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    /* A late release does no harm. */
    rig_deliver(r);
    assert_int_equal(r->drops, 1);
    assert_int_equal(r->unknown, 0);
}

static void a_failed_last_use_drops_nothing(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1001, 5));
    rig_deliver(r);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_value(r, RIG_JOB, 5, 0);
    rig_deliver(r);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(r->drops, 0);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_ERROR);
    assert_int_equal(rig_find(r, 2)->code, MR_EUNKNOWN);
}

static void a_release_waits_for_the_users_that_are_here(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1, 3));
    rig_deliver(r);
    rig_run_all(r);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 0);
    rig_deliver(r);
    assert_int_equal(r->drops, 0);
    rig_value(r, RIG_JOB, 3, 0);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->drops, 1);
}

static void a_release_of_another_attempt_drops_nothing(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 3, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_run_all(r);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 2);
    rig_deliver(r);
    assert_int_equal(r->drops, 0);
}

static void a_remote_input_is_fetched_before_its_task_starts(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    assert_int_equal(r->fetches, 1);
    struct mr_worker_event ev = {
        .kind = MR_WORKER_FETCHED, .fetched = {.value = r->fetch_value, .serial = r->fetch_serial}};
    rig_step(r, &ev);
    /* A repeated event does no harm. */
    rig_step(r, &ev);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->items[0].inputs[0].kind, MR_STRAND_OBJECT);
    rig_run_all(r);
    assert_int_equal(r->unpins, 1);
}

static void an_object_of_this_node_needs_no_fetch(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 1);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 0);
    assert_int_equal(r->strands_count, 1);
}

static void what_a_ready_task_reads_is_wanted_while_objects_are_on_disk(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 1);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->wants, 0);
    r->has_spilled = true;
    rig_turn(r);
    rig_value(r, RIG_JOB, 3, 1);
    rig_task(r, RIG_JOB, 4, 1, OP_INC, INPUTS(3));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->wants, 1);
}

static void an_op_by_reference_needs_no_fetch(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 1, OP_REF, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 0);
    assert_int_equal(r->strands_count, 1);
    const struct mr_strand_input *in = &r->strands[0]->items[0].inputs[0];
    assert_true(mr_str_eq(r->strands[0]->nodes[in->node].address, MR_STR("unix:there")));
}

static void fetches_stay_below_their_budget(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < 10; i++) {
        rig_value(r, RIG_JOB, (uint32_t)i, 2);
        rig_task(r, RIG_JOB, (uint32_t)i + 100, 1, OP_INC, INPUTS(i));
    }
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 3); /* each object has 1 MiB, and 3 MiB may be fetched at once */
}

static void an_input_that_cannot_be_had_is_reported_once(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 2);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1, 1));
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(2));
    rig_deliver(r);
    rig_turn(r);
    struct mr_worker_event ev = {.kind = MR_WORKER_FETCHED,
        .fetched = {.value = r->fetch_value,
            .serial = r->fetch_serial,
            .err = MR_ELOST,
            .why = MR_STR("its store is gone")}};
    rig_step(r, &ev);
    rig_step(r, &ev);
    rig_turn(r);
    assert_int_equal(r->missing, 1);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_LOST_INPUT);
    rig_value(r, RIG_JOB, 1, 1); /* the scheduler sends the value and the task again */
    rig_task(r, RIG_JOB, 2, 2, OP_INC, INPUTS(1, 1));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_OK);
    /* Task 3 has waited for the value all the time. */
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_OK);
}

static void an_object_gone_under_a_running_task_is_a_lost_input(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 1);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(1, 4));
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
    s->items[0].result.message = MR_STR("gone");
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(r->missing, 2);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_LOST_INPUT);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_LOST_INPUT);
}

static void a_worker_that_is_not_there_is_freed(void **state)
{
    struct mr_worker *none = NULL;
    (void)state;
    mr_worker_free(&none);
    assert_null(none);
}

/* The scheduler sent the value of task 1 to the worker, and then lost the value. So the scheduler
 * assigns task 1 to the worker, which still has the value for task 2. */
static void a_task_runs_though_its_value_was_sent_before(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 0);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1, 90));
    rig_deliver(r);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 1);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w)); /* the bytes that the scheduler had sent are freed too */
}

/* Several sessions have jobs and values that end in an order other than the one in which they came.
 */
static void jobs_come_and_go(void **state)
{
    struct rig *r = *state;
    for (uint32_t round = 0; round < 20; round++) {
        uint32_t first = 10 * (round + 1), done = r->done_count;
        for (uint32_t i = 0; i < 5; i++)
            for (uint32_t k = 0; k < 3; k++)
                rig_task(r, (mr_job_id){first + i}, k, 1, OP_BLOCK, k ? INPUTS(0) : NULL);
        rig_deliver(r);
        rig_run_all(r);
        assert_int_equal(r->done_count, done + 15);
        for (uint32_t i = 0; i < 5; i++)
            for (uint32_t k = 0; k < 3; k++) {
                assert_true(mr_worker_keeps(r->w, (mr_job_id){first + i}, k));
                rig_ref(
                    &r->m.down.release, &r->m.release, (mr_job_id){first + (i + round) % 5}, k, 1);
            }
        rig_deliver(r);
        rig_turn(r);
        assert_null(mr_worker_leftover(r->w));
    }
}

/* One message forgets several jobs, of which the worker holds values. */
static void several_jobs_are_forgotten_at_once(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 3; i++) {
        rig_task(r, (mr_job_id){10 + i}, 1, 1, OP_INC, NULL);
        rig_extra(r)->want_object = true;
        r->m.forget[i] = (mr_job_id){10 + i};
    }
    rig_deliver(r);
    rig_run_all(r);
    r->m.forget[3] = (mr_job_id){99}; /* the worker has nothing of this job */
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 4;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->drops, 3);
    r->now += MR_SECOND; /* by now the worker has sent all its reports */
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w));
}

/* One message has rows of several jobs. */
static void several_values_are_released_and_asked_for_at_once(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 4; i++)
        rig_task(r, (mr_job_id){10 + i / 2}, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    r->done_count = 0;
    for (uint32_t i = 0; i < 4; i++)
        rig_ref(&r->m.down.fetch, &r->m.fetch, (mr_job_id){10 + i / 2}, i, i % 2);
    rig_ref(&r->m.down.fetch, &r->m.fetch, RIG_JOB, 77, 0);
    rig_ref(&r->m.down.fetch, &r->m.fetch, (mr_job_id){10}, 1, 2);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 4);
    /* One value is not here, the other one is of another attempt. */
    assert_int_equal(r->unknown, 2);
    for (uint32_t i = 0; i < 4; i++)
        rig_ref(&r->m.down.release, &r->m.release, (mr_job_id){10 + i / 2}, i, i % 2);
    rig_deliver(r);
    r->now += MR_SECOND; /* by now the worker has sent all its reports */
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w));
}

static void a_value_that_comes_twice_in_a_message_is_one(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 1, 0);
    rig_value(r, RIG_JOB, 1, 0);
    rig_value(r, RIG_JOB, 2, 0);
    rig_value(r, RIG_JOB, 1, 0);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(1, 2));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(register_is_the_first_message_of_a_stream),
        TEST(a_task_without_inputs_starts_and_is_reported),
        TEST(a_task_starts_when_its_last_input_comes_in_a_later_message),
        TEST(a_chain_of_tiny_tasks_is_one_strand),
        TEST(ready_tasks_are_shared_between_idle_slots),
        TEST(the_higher_priority_then_the_lower_order_goes_first),
        TEST(an_idle_slot_takes_what_another_has_not_started),
        TEST(a_duplicate_assignment_is_harmless),
        TEST(an_assignment_of_what_is_held_is_answered_not_run),
        TEST(an_object_asked_for_again_is_made_again),
        TEST(a_last_use_drops_the_value_after_success),
        TEST(a_failed_last_use_drops_nothing),
        TEST(a_release_waits_for_the_users_that_are_here),
        TEST(a_release_of_another_attempt_drops_nothing),
        TEST(a_remote_input_is_fetched_before_its_task_starts),
        TEST(an_object_of_this_node_needs_no_fetch),
        TEST(what_a_ready_task_reads_is_wanted_while_objects_are_on_disk),
        TEST(an_op_by_reference_needs_no_fetch),
        TEST(fetches_stay_below_their_budget),
        TEST(an_input_that_cannot_be_had_is_reported_once),
        TEST(an_object_gone_under_a_running_task_is_a_lost_input),
        TEST(a_worker_that_is_not_there_is_freed),
        TEST(a_task_runs_though_its_value_was_sent_before),
        TEST(jobs_come_and_go),
        TEST(several_jobs_are_forgotten_at_once),
        TEST(several_values_are_released_and_asked_for_at_once),
        TEST(a_value_that_comes_twice_in_a_message_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
