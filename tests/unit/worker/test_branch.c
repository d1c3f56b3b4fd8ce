/* The worker's core: which tasks join a strand because the strand makes their inputs, and which are
 * left for idle slots. A slot is an executor thread, and a strand is a list of tasks that one
 * executor runs in order. A hand-off gives a strand to an idle slot; its cost is the time until the
 * executor begins. */
#include "tests/unit/worker/test.h"

static int setup_one(void **state)
{
    *state = rig_new(1);
    return 0;
}

/* Sends x and two tasks that use x. Returns how many tasks the first strand has. */
static uint32_t fork_of(struct rig *r, uint32_t first)
{
    int x = (int)first;
    rig_task(r, RIG_JOB, first, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, first + 1, 1, OP_INC, INPUTS(x));
    rig_task(r, RIG_JOB, first + 2, 1, OP_INC, INPUTS(x));
    rig_deliver(r);
    rig_turn(r);
    uint32_t n = r->strands[0]->count;
    rig_run_all(r);
    return n;
}

/* Hands tasks to an idle slot until the core has measured hand-offs of `late` and a run time of
 * `took`. */
static void hand_off(struct rig *r, mr_duration late, mr_duration took)
{
    for (uint32_t i = 0; i < 80; i++) {
        rig_task(r, RIG_JOB, 900 + i, 2, OP_INC, NULL);
        rig_extra(r)->want_object = true;
        rig_deliver(r);
        rig_turn(r);
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_FAILED);
        if (took) rig_result(r, &s->items[0], MR_STRAND_DONE);
        s->items[0].result.started_ns = r->now + late;
        s->items[0].result.duration_ns = took;
        rig_report(r, s, 1);
        rig_turn(r);
        rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 900 + i, 2);
        rig_deliver(r);
    }
}

/* A branch goes to an idle slot if it takes longer than four times the measured hand-off. That
 * bound is at least 20 µs and at most 200 µs. */
static void branches_that_take_longer_than_hand_offs_go_to_idle_slots(void **state)
{
    struct rig *r = *state;
    hand_off(r, 0, 20 * MR_US);
    assert_int_equal(fork_of(r, 0), 3);
    hand_off(r, 0, 24 * MR_US);
    assert_int_equal(fork_of(r, 10), 1);
    hand_off(r, 30 * MR_US, 112 * MR_US);
    assert_int_equal(fork_of(r, 20), 3);
    hand_off(r, 30 * MR_US, 128 * MR_US);
    assert_int_equal(fork_of(r, 30), 1);
    hand_off(r, 10 * MR_MS, 200 * MR_US);
    assert_int_equal(fork_of(r, 40), 3);
    hand_off(r, 10 * MR_MS, 208 * MR_US);
    assert_int_equal(fork_of(r, 50), 1);
    /* A hand-off of 10 ms counts as one of 1 ms, so that it is soon forgotten. */
    for (uint32_t i = 0; i < 2; i++)
        hand_off(r, 0, 24 * MR_US);
    assert_int_equal(fork_of(r, 60), 1);
}

/* Another task is ready for the only idle slot, so the branches stay together. */
static void branches_stay_together_if_each_idle_slot_has_other_work(void **state)
{
    struct rig *r = *state;
    hand_off(r, 0, 800 * MR_US);
    rig_task(r, RIG_JOB, 100, 1, OP_INC, NULL);
    assert_int_equal(fork_of(r, 0), 3);
    /* This task is not ready, so it needs no slot. */
    rig_task(r, RIG_JOB, 101, 1, OP_INC, INPUTS(90));
    assert_int_equal(fork_of(r, 10), 1);
}

/* Tasks that need a value of a strand join the strand, the task with the lowest index first, until
 * the strand has no more room. The other tasks run later. */
static void a_strand_takes_dependents_in_their_order(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL);
    for (uint32_t i = 0; i < 100; i++)
        rig_task(r, RIG_JOB, 100 - i, 1, OP_INC, INPUTS(0));
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand *s = r->strands[0];
    assert_in_range(s->count, 2, 101);
    for (uint32_t i = 2; i < s->count; i++)
        assert_true(s->items[i].index > s->items[i - 1].index);
    rig_run_all(r);
    assert_int_equal(r->done_count, 101);
}

/* Before a hand-off is measured, it counts as 12 µs. So a branch of 48 µs (four times 12) is not
 * worth a hand-off. */
static void a_hand_off_is_estimated_before_it_is_measured(void **state)
{
    const struct mr_worker_op ops[] = {{.name = MR_STR_INIT("inc"), .cost_ns = 48 * MR_US},
        {.name = MR_STR_INIT("slow"), .cost_ns = 48 * MR_US + 1}};
    const struct mr_worker_config c = {.slots = 2,
        .tasks_max = 20,
        .values_max = 100,
        .outbox_max = 20,
        .bytes_max = 1 << 20,
        .ops = ops,
        .ops_count = MR_ARRAY_LEN(ops)};
    (void)state;
    for (uint32_t op = OP_INC; op <= OP_SLOW; op++) {
        struct rig *r = rig_of(&c);
        for (uint32_t i = 0; i < 3; i++)
            rig_task(r, RIG_JOB, i, 1, op, i ? INPUTS(0) : NULL);
        rig_deliver(r);
        rig_turn(r);
        assert_int_equal(r->strands[0]->count, op == OP_INC ? 3 : 1);
        rig_free(&r);
    }
}

/* Sends tasks 0 to `n` - 1, `others` tasks with indexes from 50, and task 100, which needs tasks 0
 * to `n` - 1. Task 100 names task 1 twice among its inputs. */
static void join(struct rig *r, uint32_t n, uint32_t others)
{
    int inputs[16];
    for (uint32_t i = 0; i < n; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        if (i) r->m.order[i] = 200 + i;
        inputs[n - 1 - i] = (int)i;
    }
    inputs[n] = 1;
    inputs[n + 1] = -1;
    for (uint32_t i = 0; i < others; i++)
        rig_task(r, RIG_JOB, 50 + i, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 100, 1, OP_INC, inputs);
    rig_deliver(r);
    rig_turn(r);
}

static void assert_strand(const struct mr_strand *s, uint32_t count)
{
    assert_int_equal(s->count, count);
    for (uint32_t i = 0; i + 1 < count; i++)
        assert_int_equal(s->items[i].index, i);
    assert_int_equal(s->items[count - 1].index, count == 1 ? 0 : 100);
}

/* The inputs of task 100 join the strand before other ready tasks, although those tasks come first
 * in the order. So the strand can run task 100, too. */
static void inputs_that_are_ready_join_with_the_task_that_needs_them(void **state)
{
    struct rig *r = *state;
    /* Without task 100 a strand would take only one of the ready tasks. */
    rig_measure(r, OP_INC, MR_MS);
    join(r, 7, 3); /* task 100 has eight inputs, of which two are the same */
    assert_strand(r->strands[0], 8);
    rig_run_all(r);
    assert_int_equal(r->done_count, 11);
}

static void a_task_with_many_inputs_does_not_bring_them_along(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_MS);
    join(r, 8, 3);
    assert_strand(r->strands[0], 1);
    rig_run_all(r);
    assert_int_equal(r->done_count, 12);
}

static void an_input_that_an_idle_slot_can_run_does_not_join(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_MS);
    join(r, 2, 0);
    assert_strand(r->strands[0], 1);
    assert_int_equal(r->strands[1]->items[0].index, 1);
}

static void an_input_joins_if_the_idle_slot_has_other_work(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_MS);
    join(r, 2, 1);
    assert_strand(r->strands[0], 3);
    assert_int_equal(r->strands[1]->items[0].index, 50);
}

/* Task 100 needs tasks 0 to 2. Task 0 begins a strand. Of tasks 1 and 2, one joins this strand, and
 * the idle slot runs the other one. */
static void an_idle_slot_gets_one_of_several_inputs(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_MS);
    join(r, 3, 0);
    assert_int_equal(r->strands[0]->count, 2);
    assert_int_equal(r->strands[1]->count, 1);
    rig_run_all(r);
    assert_int_equal(r->done_count, 4);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_one, teardown)

/* A task of an operator that may block has a strand of its own. */
static void a_blocking_task_joins_nothing(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 0, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(0, 1));
    rig_task(r, RIG_JOB, 3, 1, OP_BLOCK, INPUTS(0));
    rig_deliver(r);
    for (uint32_t i = 0; i < 4; i++) {
        rig_turn(r);
        assert_int_equal(r->strands_count, 1);
        assert_int_equal(r->strands[0]->count, 1);
        rig_run(r, 0, MR_STRAND_DONE);
    }
    rig_turn(r);
    assert_int_equal(r->done_count, 4);
}

/* A task may join a strand because it is ready, or because a task of the strand needs its value. A
 * task to which both apply must join only once. */
static void a_task_joins_once(void **state)
{
    struct rig *r = *state;
    join(r, 7, 3);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 11);
    bool is_there[101] = {0};
    for (uint32_t i = 0; i < 11; i++) {
        assert_false(is_there[r->strands[0]->items[i].index]);
        is_there[r->strands[0]->items[i].index] = true;
    }
}

static struct mr_strand *start_one(struct rig *r, uint32_t index)
{
    rig_task(r, RIG_JOB, index, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    return r->strands[r->strands_count - 1];
}

/* The third strand waits behind the first one in the same slot. Its waiting time does not count as
 * a hand-off. */
static void only_hand_offs_to_idle_slots_are_measured(void **state)
{
    struct rig *r = *state;
    hand_off(r, 0, 24 * MR_US);
    for (uint32_t i = 0; i < 40; i++) {
        struct mr_strand *s[3];
        for (uint32_t k = 0; k < 3; k++)
            s[k] = start_one(r, 100 + 3 * i + k); /* the third strand waits behind the first one */
        assert_int_equal(s[2]->slot, s[0]->slot);
        for (uint32_t k = 0; k < 3; k++) {
            rig_result(r, &s[k]->items[0], MR_STRAND_DONE);
            s[k]->items[0].result.duration_ns = 24 * MR_US;
            if (k == 2) s[k]->items[0].result.started_ns += 10 * MR_MS;
            rig_report(r, s[k], 1);
        }
        rig_turn(r);
    }
    assert_int_equal(fork_of(r, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(branches_that_take_longer_than_hand_offs_go_to_idle_slots),
        TEST(branches_stay_together_if_each_idle_slot_has_other_work),
        ONE(a_strand_takes_dependents_in_their_order),
        ONE(inputs_that_are_ready_join_with_the_task_that_needs_them),
        ONE(a_task_with_many_inputs_does_not_bring_them_along),
        TEST(an_input_that_an_idle_slot_can_run_does_not_join),
        TEST(an_input_joins_if_the_idle_slot_has_other_work),
        ONE(a_blocking_task_joins_nothing),
        ONE(a_task_joins_once),
        TEST(only_hand_offs_to_idle_slots_are_measured),
        TEST(an_idle_slot_gets_one_of_several_inputs),
        cmocka_unit_test(a_hand_off_is_estimated_before_it_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
