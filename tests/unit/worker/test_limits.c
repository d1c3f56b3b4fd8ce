/* The worker's core: which tasks may run at the same time, which are refused, and which run
 * first. */
#include "tests/unit/worker/test.h"

static void resources_are_taken_at_start_and_given_back(void **state)
{
    struct rig *r = *state;
    struct mr_ws_resource gpu = {MR_STR("gpu"), 600000};
    for (uint32_t i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        struct mr_ws_extra *x = rig_extra(r);
        x->resources = &gpu;
        x->resources_count = 1;
    }
    rig_task(r, RIG_JOB, 2, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2); /* one task has the gpu, and one needs none */
    assert_int_equal(r->strands[0]->items[0].index, 0);
    assert_int_equal(r->strands[1]->items[0].index, 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands[1]->items[0].index, 1);
}

static void a_task_that_asks_for_more_than_there_is_goes_back(void **state)
{
    struct rig *r = *state;
    struct mr_ws_resource much = {MR_STR("gpu"), 1500000};
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    struct mr_ws_extra *x = rig_extra(r);
    x->resources = &much;
    x->resources_count = 1;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_RETURNED);
}

static void a_long_running_task_does_not_occupy_a_slot(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_ROLE, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_extra(r)->long_running = true;
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 4, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 4);
    assert_true(r->strands[0]->slot >= 2);
    assert_true(r->strands[1]->slot >= 2);
    assert_true(r->strands[3]->slot < 2);
}

static void an_alone_task_runs_with_nothing_beside_it(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_extra(r)->alone = true;
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1); /* task 3 waits behind task 2, which has to run alone */
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->items[0].index, 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands[0]->items[0].index, 3);
}

static void an_alone_task_does_not_wait_for_what_runs_long(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_extra(r)->long_running = true;
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_extra(r)->alone = true;
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2); /* task 3 waits for task 2 */
    assert_int_equal(r->strands[1]->items[0].index, 2);
    rig_run(r, 1, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands[1]->items[0].index, 3);
}

static void an_op_that_this_worker_lacks_is_refused_in_words(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_NONE, NULL);
    rig_task(r, RIG_JOB, 2, 1, 4711, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_BAD_ARGUMENT);
    assert_int_equal(r->done[0].code, MR_EUNIMPL);
    assert_int_equal(r->done[1].outcome, MR_OUTCOME_BAD_ARGUMENT);
}

static void what_is_over_the_limit_goes_back(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2100; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, INPUTS(999));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 52);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_RETURNED);
    assert_int_equal(r->done[0].index, 2048);
}

static void something_urgent_takes_back_what_waits_in_strands(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 400; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 500, 1, OP_BLOCK, NULL);
    r->m.priority[0] = 10;
    rig_deliver(r);
    rig_turn(r);
    assert_true(r->takes >= 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    bool there = false;
    for (uint32_t i = 0; i < r->strands_count; i++)
        there = there || r->strands[i]->items[0].index == 500;
    assert_true(there);
}

static void what_has_begun_is_not_asked_for_again_and_again(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 400; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    r->hold_cuts = true;
    rig_task(r, RIG_JOB, 500, 1, OP_BLOCK, NULL);
    r->m.priority[0] = 10;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->takes, 2);
    /* Five items of each strand have ended and are not reported yet. */
    for (uint32_t i = 0; i < 2; i++) {
        struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {r->strands[i]->id, 5}};
        rig_step(r, &cut);
    }
    rig_turn(r);
    rig_turn(r);
    assert_int_equal(r->takes, 2);
    assert_true(mr_worker_deadline(r->w) > r->now);
}

static void columns_that_do_not_belong_together_are_refused(void **state)
{
    struct rig *r = *state;
    struct mr_error e;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(2));
    r->m.inputs_count[0] = 2;
    assert_int_equal(mr_ws_down_check(&r->m.down, &e), MR_EFORMAT);
    r->m.inputs_count[0] = 1;
    r->m.args_bytes[0] = 2;
    assert_int_equal(mr_ws_down_check(&r->m.down, &e), MR_EFORMAT);
    r->m.args_bytes[0] = 1;
    r->m.task_runs[0].count = 7;
    assert_int_equal(mr_ws_down_check(&r->m.down, &e), MR_EFORMAT);
    rig_clear(r);
    rig_value(r, RIG_JOB, 1, 0);
    r->m.down.values.inlined.n = 9;
    assert_int_equal(mr_ws_down_check(&r->m.down, &e), MR_EFORMAT);
}

static void task_with_gpu(struct rig *r, uint32_t i, struct mr_ws_resource *gpu, uint64_t micro)
{
    *gpu = (struct mr_ws_resource){MR_STR("gpu"), micro};
    rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
    struct mr_ws_extra *x = rig_extra(r);
    x->resources = gpu;
    x->resources_count = 1;
}

/* The core keeps a row for each combination of needs. A row that no task uses is free for another
 * combination. */
static void a_class_of_needs_is_used_again(void **state)
{
    struct rig *r = *state;
    struct mr_ws_resource gpu;
    for (uint32_t i = 0; i < 200; i++) {
        task_with_gpu(r, i, &gpu, 1000 + i);
        rig_deliver(r);
        rig_run_all(r);
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_OK);
    }
}

static void too_many_different_needs_at_once_go_back(void **state)
{
    static struct mr_ws_resource gpu[80];
    struct rig *r = *state;
    for (uint32_t i = 0; i < 80; i++)
        task_with_gpu(r, i, &gpu[i], 1000 + i);
    rig_deliver(r);
    r->now += MR_SECOND;
    rig_turn(r);
    uint32_t returned = 0;
    for (uint32_t i = 0; i < r->done_count; i++) {
        assert_int_equal(r->done[i].outcome, MR_OUTCOME_RETURNED);
        assert_int_equal(r->done[i].code, MR_ELIMIT);
        returned++;
    }
    assert_int_equal(
        returned, 80 - (MR_WORKER_CLASSES_MAX - 1)); /* one row is for tasks without needs */
    rig_run_all(r);
    assert_int_equal(r->done_count, 80);
}

static void a_resource_that_is_not_here_matters_when_it_is_needed(void **state)
{
    struct rig *r = *state;
    struct mr_ws_resource none[] = {{MR_STR("tpu"), 0}, {MR_STR("gpu"), 1000000}},
                          some = {MR_STR("tpu"), 1};
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    struct mr_ws_extra *x = rig_extra(r);
    x->resources = none;
    x->resources_count = 2;
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, NULL);
    x = rig_extra(r);
    x->resources = &some;
    x->resources_count = 1;
    rig_deliver(r);
    rig_run_all(r);
    /* Task 1 needs the whole gpu, and 0 of the resource tpu, which the worker lacks. */
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_RETURNED);
    assert_int_equal(rig_find(r, 2)->code, MR_ELIMIT);
}

/* Each resource is counted by itself. A task that needs only the second resource does not wait for
 * the first one. */
static void several_resources_are_counted_apart(void **state)
{
    static const struct mr_ws_resource both[] = {
        {MR_STR_INIT("gpu"), 1000000}, {MR_STR_INIT("licence"), 3000000}};
    static const struct mr_ws_resource needs[] = {{MR_STR_INIT("licence"), 2000000},
        {MR_STR_INIT("licence"), 1000000}, {MR_STR_INIT("gpu"), 1000000}};
    static const struct mr_worker_config c = {.slots = 4,
        .tasks_max = 20,
        .values_max = 100,
        .outbox_max = 20,
        .bytes_max = 1 << 20,
        .resources = both,
        .resources_count = 2};
    (void)state;
    struct rig *r = rig_of(&c);
    for (uint32_t round = 0; round < 3; round++) {
        /* Two tasks need two licences each, one needs one licence, and one needs a gpu. */
        for (uint32_t i = 0; i < 4; i++) {
            rig_task(r, RIG_JOB, 10 * round + i, 1, OP_BLOCK, NULL);
            struct mr_ws_extra *x = rig_extra(r);
            x->resources = &needs[i < 2 ? 0 : i - 1];
            x->resources_count = 1;
        }
        rig_deliver(r);
        rig_turn(r);
        assert_int_equal(r->strands_count, 3);
        assert_int_equal(r->strands[0]->items[0].index, 10 * round);
        assert_int_equal(r->strands[1]->items[0].index, 10 * round + 2);
        assert_int_equal(r->strands[2]->items[0].index, 10 * round + 3);
        rig_run(r, 0, MR_STRAND_DONE);
        rig_turn(r);
        assert_int_equal(r->strands[2]->items[0].index, 10 * round + 1);
        rig_run_all(r);
    }
    rig_free(&r);
}

static void an_alone_task_starts_by_itself(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_extra(r)->alone = true;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
}

/* Task 2 has to run alone and needs the gpu, which the long-running task 1 has. Until task 1 ends,
 * other tasks run. */
static void an_alone_task_waits_for_its_resource(void **state)
{
    struct rig *r = *state;
    static const struct mr_ws_resource gpu = {MR_STR_INIT("gpu"), 1000000};
    rig_task(r, RIG_JOB, 1, 1, OP_ROLE, NULL);
    struct mr_ws_extra *x = rig_extra(r);
    x->resources = &gpu;
    x->resources_count = 1;
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    x = rig_extra(r);
    x->alone = true;
    x->resources = &gpu;
    x->resources_count = 1;
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[1]->items[0].index, 3);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1); /* task 2 still waits for task 3 */
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands[0]->items[0].index, 2);
}

/* Three tasks have to run alone. They start in their order, and the fourth task, which comes first
 * in the order, starts before them. */
static void alone_tasks_go_by_their_order(void **state)
{
    struct rig *r = *state;
    static const struct mr_ws_resource gpu[] = {
        {MR_STR_INIT("gpu"), 1000}, {MR_STR_INIT("gpu"), 2000}, {MR_STR_INIT("gpu"), 3000}};
    static const uint32_t indexes[] = {3, 2, 4, 1};
    for (uint32_t i = 0; i < 4; i++) {
        rig_task(r, RIG_JOB, indexes[i], 1, OP_SLOW, NULL);
        if (i == 3) continue;
        struct mr_ws_extra *x = rig_extra(r);
        x->alone = true;
        x->resources = &gpu[i]; /* so that the tasks have different needs */
        x->resources_count = 1;
    }
    rig_deliver(r);
    for (uint32_t i = 1; i <= 4; i++) {
        rig_turn(r);
        assert_int_equal(r->strands_count, 1);
        assert_int_equal(r->strands[0]->items[0].index, i);
        rig_run(r, 0, MR_STRAND_DONE);
    }
}

static void tasks_with_the_same_needs_are_one_class(void **state)
{
    struct rig *r = *state;
    static const struct mr_ws_resource gpu[] = {
        {MR_STR_INIT("gpu"), 1000}, {MR_STR_INIT("gpu"), 2000}};
    for (uint32_t i = 0; i < 100; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
        struct mr_ws_extra *x = rig_extra(r);
        x->resources = &gpu[i % 2];
        x->resources_count = 1;
    }
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(r->done[i].outcome, MR_OUTCOME_OK);
}

/* A long-running task runs beside others, even if it was sent with `alone`. */
static void a_long_running_task_is_never_alone(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 2, 1, OP_ROLE, NULL);
    rig_extra(r)->alone = true;
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 3);
}

/* Each task has its own memory for its texts, whatever their length. */
static void texts_of_tasks_do_not_overlap(void **state)
{
    struct rig *r = *state;
    static char keys[100];
    memset(keys, 'k', sizeof keys);
    for (uint32_t i = 0; i < sizeof keys; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        struct mr_ws_extra *x = rig_extra(r);
        x->key = mr_str_of(keys, i);
        x->persist_name = mr_str_of(keys, 1);
        x->definition = MR_STR("sixteen bytes ok");
    }
    r->hold_cuts = true;
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, sizeof keys);
    for (uint32_t i = 0; i < sizeof keys; i++) {
        assert_true(mr_str_eq(s->items[i].key, mr_str_of(keys, i)));
        assert_true(mr_str_eq(s->items[i].persist_name, MR_STR("k")));
        assert_true(mr_str_eq(s->items[i].definition, MR_STR("sixteen bytes ok")));
    }
}

/* A task is refused if the memory for small values is above its limit already. At exactly the limit
 * one more task is taken. */
static void the_memory_for_arguments_has_a_limit(void **state)
{
    static const struct mr_worker_config c = {.slots = 1,
        .tasks_max = 20,
        .values_max = 100,
        .outbox_max = 20,
        .bytes_max = 640,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&c);
    for (uint32_t i = 0; i < 20; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL); /* each task takes 64 bytes */
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 9);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(r->done[i].index, 11 + i);
        assert_int_equal(r->done[i].outcome, MR_OUTCOME_RETURNED);
        /* The completion has no error, so the scheduler may send the task again. */
        assert_int_equal(r->done[i].code, MR_OK);
    }
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(resources_are_taken_at_start_and_given_back),
        TEST(a_task_that_asks_for_more_than_there_is_goes_back),
        TEST(a_long_running_task_does_not_occupy_a_slot),
        TEST(an_alone_task_runs_with_nothing_beside_it),
        TEST(an_alone_task_does_not_wait_for_what_runs_long),
        TEST(an_op_that_this_worker_lacks_is_refused_in_words),
        TEST(what_is_over_the_limit_goes_back),
        TEST(something_urgent_takes_back_what_waits_in_strands),
        TEST(what_has_begun_is_not_asked_for_again_and_again),
        TEST(columns_that_do_not_belong_together_are_refused),
        TEST(a_class_of_needs_is_used_again),
        TEST(too_many_different_needs_at_once_go_back),
        TEST(a_resource_that_is_not_here_matters_when_it_is_needed),
        cmocka_unit_test(several_resources_are_counted_apart),
        TEST(an_alone_task_starts_by_itself),
        TEST(an_alone_task_waits_for_its_resource),
        TEST(alone_tasks_go_by_their_order),
        TEST(tasks_with_the_same_needs_are_one_class),
        TEST(a_long_running_task_is_never_alone),
        TEST(texts_of_tasks_do_not_overlap),
        cmocka_unit_test(the_memory_for_arguments_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
