/* The worker's core: how much work one strand gets, which strands wait behind a running one, and
 * which tasks the core takes back from executors for more urgent tasks. A strand is a list of tasks
 * that one executor runs back to back. */
#include "tests/unit/worker/test.h"

static int setup_one(void **state)
{
    *state = rig_new(1);
    return 0;
}

static int setup_three(void **state)
{
    *state = rig_new(3);
    return 0;
}

/* Sends `n` tasks without inputs, from `first` on. */
static void ready(struct rig *r, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        rig_task(r, RIG_JOB, first + i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
}

static void chain(struct rig *r, uint32_t n, mr_duration took)
{
    rig_measure(r, OP_INC, took);
    rig_chain(r, n, OP_INC);
    rig_deliver(r);
    rig_turn(r);
}

static void cut(struct rig *r, const struct mr_strand *s, uint32_t count)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_CUT, .cut = {s->id, count}};
    rig_step(r, &ev);
}

static void report_one(struct rig *r, struct mr_strand *s)
{
    rig_result(r, &s->items[s->reported], MR_STRAND_DONE);
    rig_report(r, s, s->reported + 1);
}

/* ---- the size of a strand -------------------------------------------------------------------- */

static void a_strand_takes_a_millisecond_of_ready_work_and_one_more_waits_behind_it(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 100 * MR_US);
    ready(r, 0, 30);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[0]->count, 10);
    assert_int_equal(r->strands[1]->count, 10);
    assert_int_equal(r->strands[1]->items[0].index, 10);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[1]->items[0].index, 20);
}

static void idle_slots_share_what_is_ready(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 40 * MR_US);
    ready(r, 0, 13);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[0]->count, 7);
    assert_int_equal(r->strands[1]->count, 6);
}

/* The first strand takes more than its share if it would end before a hand-off to another slot
 * could help. */
static void a_share_is_worth_a_hand_off(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_US);
    ready(r, 0, 30);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[0]->count, 20);
    assert_int_equal(r->strands[1]->count, 10);
}

static void a_chain_is_divided_after_twenty_milliseconds(void **state)
{
    struct rig *r = *state;
    chain(r, 30, MR_MS);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 20);
    rig_run_all(r);
    assert_int_equal(r->done_count, 30);
}

static void a_strand_has_a_bounded_number_of_tasks(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 300, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands[0]->count, MR_STRAND_ITEMS_MAX);
    rig_run_all(r);
    assert_int_equal(r->done_count, 300);
}

/* Sends three tasks. Each task names value 50 as an input `n` times. */
static void read_often(struct rig *r, uint32_t n)
{
    static int inputs[1100];
    for (uint32_t i = 0; i < n; i++)
        inputs[i] = 50;
    inputs[n] = -1;
    rig_value(r, RIG_JOB, 50, 0);
    for (uint32_t i = 0; i < 3; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, inputs);
    rig_deliver(r);
    rig_turn(r);
}

static void a_strand_has_a_bounded_number_of_inputs(void **state)
{
    struct rig *r = *state;
    read_often(r, 512);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 2); /* two tasks have 1024 inputs together */
    for (uint32_t i = 0; i < 512; i++)
        assert_int_equal(r->strands[0]->items[1].inputs[i].pack.n, 1);
    rig_run_all(r);
    assert_int_equal(r->done_count, 3);
}

static void a_task_with_more_inputs_than_that_runs_by_itself(void **state)
{
    struct rig *r = *state;
    read_often(r, 1025);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(r->strands_count, 1);
        assert_int_equal(r->strands[0]->count, 1);
        assert_int_equal(r->strands[0]->items[0].inputs_count, 1025);
        for (uint32_t k = 0; k < 1025; k++)
            assert_int_equal(r->strands[0]->items[0].inputs[k].pack.n, 1);
        rig_run(r, 0, MR_STRAND_DONE);
        rig_turn(r);
    }
    assert_int_equal(r->done_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, i, 1);
    rig_deliver(r);
    assert_null(mr_worker_leftover(r->w));
}

/* The inputs of a task with very many inputs are written to memory of their own. They do not
 * overwrite the inputs of tasks in other slots. */
static void a_task_with_many_inputs_has_room_of_its_own(void **state)
{
    struct rig *r = *state;
    static int inputs[2000];
    rig_value(r, RIG_JOB, 50, 0);
    for (uint32_t i = 0; i < 3; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, INPUTS(50));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(r->strands[i]->items[0].inputs[0].index, 50);
    rig_run(r, 1, MR_STRAND_DONE); /* frees memory that lies between that of two other strands */
    rig_turn(r);
    for (uint32_t i = 0; i < 1999; i++)
        inputs[i] = 51;
    inputs[1999] = -1;
    rig_value(r, RIG_JOB, 51, 0);
    rig_task(r, RIG_JOB, 10, 1, OP_BLOCK, inputs);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(r->strands[i]->items[0].inputs[0].index, i < 2 ? 50 : 51);
}

/* ---- what waits behind a strand -------------------------------------------------------------- */

static void nothing_waits_behind_more_than_five_milliseconds(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 5 * MR_MS + 8);
    ready(r, 0, 1);
    ready(r, 1, 1);
    assert_int_equal(r->strands_count, 1);
    rig_run_all(r);
    rig_measure(r, OP_INC, 5 * MR_MS);
    ready(r, 2, 1);
    ready(r, 3, 1);
    assert_int_equal(r->strands_count, 2);
}

static void what_is_left_of_a_strand_counts(void **state)
{
    struct rig *r = *state;
    chain(r, 6, MR_MS);
    ready(r, 100, 1);
    assert_int_equal(r->strands_count, 1);
    report_one(r, r->strands[0]);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[1]->items[0].index, 100);
}

static void what_was_cut_off_a_strand_does_not_count(void **state)
{
    struct rig *r = *state;
    chain(r, 6, MR_MS);
    ready(r, 100, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 5, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[0]->count, 5);
}

static void nothing_waits_behind_work_of_unknown_length(void **state)
{
    struct rig *r = *state;
    ready(r, 0, 1);
    ready(r, 1, 1);
    assert_int_equal(r->strands_count, 1);
}

static void nothing_waits_behind_a_task_that_is_being_stopped(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_US);
    ready(r, 0, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 0, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    ready(r, 1, 1);
    assert_int_equal(r->strands_count, 1);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->strands[0]->items[0].index, 1);
}

static void nothing_waits_behind_a_task_with_needs_and_no_blocking_task_waits_at_all(void **state)
{
    static const struct mr_ws_resource gpu = {MR_STR_INIT("gpu"), 1000};
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_US);
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL);
    struct mr_ws_extra *x = rig_extra(r);
    x->resources = &gpu;
    x->resources_count = 1;
    rig_deliver(r);
    rig_turn(r);
    ready(r, 1, 1);
    assert_int_equal(r->strands_count, 1);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1); /* only task 1 runs */
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
}

/* ---- urgent work ----------------------------------------------------------------------------- */

static void urgent(struct rig *r, uint32_t index, int32_t priority)
{
    rig_task(r, RIG_JOB, index, 1, OP_BLOCK, NULL);
    r->m.priority[0] = priority;
    rig_deliver(r);
    rig_turn(r);
}

/* Starts a strand that has three tasks each of priorities 3, 2 and 1. */
static void three_priorities(struct rig *r)
{
    rig_measure(r, OP_INC, 40 * MR_US);
    for (uint32_t i = 0; i < 9; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        r->m.priority[i] = 3 - (int32_t)i / 3;
    }
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 9);
    r->hold_cuts = true;
}

static void urgent_work_takes_back_what_is_less_urgent(void **state)
{
    struct rig *r = *state;
    three_priorities(r);
    urgent(r, 100, 1);
    assert_int_equal(r->takes, 0); /* no task of the strand is less urgent */
    urgent(r, 101, 2);
    assert_int_equal(r->takes, 1);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 6);
    cut(r, r->strands[0], 6);
    rig_turn(r);
    assert_int_equal(r->takes, 1); /* the rest of the strand is as urgent as the waiting task */
    urgent(r, 102, 4);
    assert_int_equal(r->takes, 2);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 0);
}

static void urgent_work_does_not_take_back_what_runs(void **state)
{
    struct rig *r = *state;
    three_priorities(r);
    for (uint32_t i = 0; i < 8; i++)
        report_one(r, r->strands[0]);
    urgent(r, 100, 9);
    assert_int_equal(r->takes, 0); /* only the last item is left, and it runs */
    r->hold_cuts = false;
    ready(r, 200, 1); /* another strand waits behind the first one */
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands[0]->items[0].index, 100);
}

static void urgent_work_takes_back_what_waits_behind_a_running_task(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 40 * MR_US);
    ready(r, 0, 1);
    ready(r, 1, 1);
    assert_int_equal(r->strands_count, 2);
    r->hold_cuts = true;
    urgent(r, 100, 9);
    assert_int_equal(r->takes, 1);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.strand, r->strands[1]->id);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 0);
}

/* The first task has as many inputs as all tasks of a strand together may have. The second task has
 * no inputs, so it can still join the first task's strand. */
static void a_task_with_as_many_inputs_as_a_strand_holds_is_not_alone(void **state)
{
    struct rig *r = *state;
    static int inputs[1025];
    for (uint32_t i = 0; i < 1024; i++)
        inputs[i] = 50;
    inputs[1024] = -1;
    rig_value(r, RIG_JOB, 50, 0);
    rig_task(r, RIG_JOB, 0, 1, OP_INC, inputs);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 2);
}

static void urgent_work_that_has_started_takes_nothing_back(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 40 * MR_US);
    rig_task(r, RIG_JOB, 50, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    ready(r, 0, 5);
    assert_int_equal(r->strands[1]->count, 5);
    rig_run(r, 0, MR_STRAND_DONE);
    urgent(r, 100, 9);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->takes, 0);
}

/* A slot is idle, but the outbox is full, so no task may start. So the core takes nothing back for
 * urgent tasks. */
static void urgent_work_that_cannot_start_takes_nothing_back(void **state)
{
    static const struct mr_worker_config small = {.slots = 2,
        .tasks_max = 100,
        .values_max = 300,
        .outbox_max = 1,
        .bytes_max = 1 << 20,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    rig_measure(r, OP_INC, 40 * MR_US);
    r->now += MR_SECOND;
    ready(r, 0, 10);
    assert_int_equal(r->strands_count, 2);
    r->connected = false;
    rig_run(r, 1, MR_STRAND_DONE);
    urgent(r, 100, 9);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->takes, 0);
    rig_free(&r);
}

static void no_task_starts_while_the_outbox_is_full(void **state)
{
    static const struct mr_worker_config small = {.slots = 1,
        .tasks_max = 20,
        .values_max = 100,
        .outbox_max = 3,
        .bytes_max = 1 << 20,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    r->connected = false; /* the stream takes no message */
    for (uint32_t i = 0; i < 10; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->starts, 3);
    r->connected = true;
    rig_turn(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 10);
    rig_free(&r);
}

/* The core finds room for the edges of the task (its links to its inputs), but not for the array of
 * inputs that an executor reads, which is larger. */
static void a_task_whose_inputs_find_no_room_fails_in_words(void **state)
{
    static const struct mr_worker_config small = {.slots = 1,
        .tasks_max = 20,
        .values_max = 100,
        .outbox_max = 20,
        .bytes_max = 64 << 10,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    static int inputs[1026];
    for (uint32_t i = 0; i < 1025; i++)
        inputs[i] = 50;
    inputs[1025] = -1;
    rig_value(r, RIG_JOB, 50, 0);
    rig_task(r, RIG_JOB, 1, 4, OP_INC, inputs);
    rig_deliver(r);
    r->now += MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->starts, 0);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_ERROR);
    assert_int_equal(r->done[0].code, MR_ELIMIT);
    assert_int_equal(r->done[0].attempt, 4);
    rig_turn(r); /* frees the error texts, which the last message has borrowed */
    assert_null(mr_worker_leftover(r->w));
    rig_free(&r);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_one, teardown)
#define THREE(name) cmocka_unit_test_setup_teardown(name, setup_three, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(a_strand_takes_a_millisecond_of_ready_work_and_one_more_waits_behind_it),
        TEST(idle_slots_share_what_is_ready),
        TEST(a_share_is_worth_a_hand_off),
        TEST(a_chain_is_divided_after_twenty_milliseconds),
        TEST(a_strand_has_a_bounded_number_of_tasks),
        ONE(a_strand_has_a_bounded_number_of_inputs),
        ONE(a_task_with_more_inputs_than_that_runs_by_itself),
        THREE(a_task_with_many_inputs_has_room_of_its_own),
        ONE(nothing_waits_behind_more_than_five_milliseconds),
        ONE(what_is_left_of_a_strand_counts),
        ONE(what_was_cut_off_a_strand_does_not_count),
        ONE(nothing_waits_behind_work_of_unknown_length),
        ONE(nothing_waits_behind_a_task_that_is_being_stopped),
        ONE(nothing_waits_behind_a_task_with_needs_and_no_blocking_task_waits_at_all),
        ONE(urgent_work_takes_back_what_is_less_urgent),
        ONE(urgent_work_does_not_take_back_what_runs),
        ONE(urgent_work_takes_back_what_waits_behind_a_running_task),
        ONE(a_task_with_as_many_inputs_as_a_strand_holds_is_not_alone),
        cmocka_unit_test(no_task_starts_while_the_outbox_is_full),
        cmocka_unit_test(a_task_whose_inputs_find_no_room_fails_in_words),
        TEST(urgent_work_that_has_started_takes_nothing_back),
        cmocka_unit_test(urgent_work_that_cannot_start_takes_nothing_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
