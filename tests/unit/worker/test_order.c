/* The worker's core: in which order tasks start and objects are fetched. The highest priority goes
 * first, then the lowest order, whichever tasks came and went before. */
#include "base/rng.h"
#include "tests/unit/worker/test.h"

#define COUNT 200u

static struct row {
    int32_t priority;
    uint32_t order;
    bool is_gone;
} rows[COUNT];

static int setup_one(void **state)
{
    *state = rig_new(1);
    return 0;
}

/* Draws a priority and an order for each task. There are few priorities, so many tasks share one;
 * each order belongs to one task only. */
static void draw_rows(uint64_t seed)
{
    struct mr_rng rng;
    mr_rng_init(&rng, seed);
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i] = (struct row){.priority = (int32_t)mr_rng_below(&rng, 5) - 2, .order = i};
    for (uint32_t i = COUNT; i > 1; i--) {
        uint32_t k = (uint32_t)mr_rng_below(&rng, i), order = rows[k].order;
        rows[k].order = rows[i - 1].order;
        rows[i - 1].order = order;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        rows[i].is_gone = mr_rng_below(&rng, 4) == 0;
}

static bool goes_before(uint32_t a, uint32_t b)
{
    if (rows[a].priority != rows[b].priority) return rows[a].priority > rows[b].priority;
    return rows[a].order < rows[b].order;
}

/* Returns the task that goes first of those that are left; COUNT: no task is left. */
static uint32_t best(const bool *is_over)
{
    uint32_t at = COUNT;
    for (uint32_t i = 0; i < COUNT; i++)
        if (!is_over[i] && !rows[i].is_gone && (at == COUNT || goes_before(i, at))) at = i;
    return at;
}

static void put_task(struct rig *r, uint32_t i, const int *inputs)
{
    uint32_t at = r->m.down.tasks.count;
    rig_task(r, RIG_JOB, i, 1, OP_BLOCK, inputs);
    r->m.priority[at] = rows[i].priority;
    r->m.order[at] = rows[i].order;
}

static void cancel_the_gone(struct rig *r)
{
    for (uint32_t i = 0; i < COUNT; i++)
        if (rows[i].is_gone) rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, i, 1);
    rig_deliver(r);
}

static void the_best_of_the_ready_tasks_starts_next(void **state)
{
    struct rig *r = *state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bool is_over[COUNT] = {0};
        draw_rows(seed);
        for (uint32_t i = 0; i < COUNT; i++)
            put_task(r, i, NULL);
        rig_deliver(r);
        cancel_the_gone(r);
        for (uint32_t next; (next = best(is_over)) < COUNT;) {
            rig_turn(r);
            assert_int_equal(r->strands_count, 1);
            assert_int_equal(r->strands[0]->count, 1);
            assert_int_equal(r->strands[0]->items[0].index, next);
            is_over[next] = true;
            /* A failed task leaves no value at the worker, so the task may be sent again for the
             * next seed. */
            rig_run(r, 0, MR_STRAND_FAILED);
        }
        rig_turn(r);
        assert_int_equal(r->strands_count, 0);
    }
}

/* Sends objects. Each object is the input of two tasks. The second task has the lowest priority. At
 * the end the function cancels all second tasks. */
static void send_objects(struct rig *r)
{
    for (uint32_t i = 0; i < COUNT; i++)
        rig_value(r, RIG_JOB, 300 + i, 2);
    for (uint32_t i = 0; i < COUNT; i++)
        put_task(r, i, INPUTS((int)(300 + i)));
    for (uint32_t i = 0; i < COUNT; i++)
        rig_task(r, RIG_JOB, 600 + i, 1, OP_BLOCK, INPUTS((int)(300 + i)));
    for (uint32_t i = COUNT; i < 2 * COUNT; i++) {
        r->m.priority[i] = -10;
        r->m.order[i] = 2 * COUNT - i;
    }
    rig_deliver(r);
    cancel_the_gone(r);
    for (uint32_t i = 0; i < COUNT; i++)
        rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 600 + i, 1);
    rig_deliver(r);
}

/* The first object that the worker fetches arrives. Then the task that needs it fails, so the
 * worker keeps neither the task nor the object. */
static void fetched(struct rig *r)
{
    struct mr_worker_event ev = {.kind = MR_WORKER_FETCHED,
        .fetched = {r->fetched[0].value, r->fetched[0].serial, MR_OK, {0}}};
    rig_step(r, &ev);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
}

static void the_object_of_the_best_task_is_fetched_next(void **state)
{
    struct rig *r = *state;
    for (uint64_t seed = 11; seed <= 30; seed++) {
        bool is_over[COUNT] = {0};
        uint32_t asked = 0;
        draw_rows(seed);
        send_objects(r);
        rig_turn(r);
        assert_int_equal(r->fetched_count, 3); /* three objects of 1 MiB fill the budget */
        for (uint32_t next; (next = best(is_over)) < COUNT; asked++) {
            is_over[next] = true;
            if (asked >= 3) fetched(r);
            bool is_there = false;
            for (uint32_t i = 0; i < r->fetched_count; i++)
                is_there |= r->fetched[i].object.number == 300 + next;
            assert_true(is_there);
            if (asked >= 3)
                assert_int_equal(r->last[MR_WORKER_FETCH].object.object.number, 300 + next);
        }
        for (uint32_t i = 0; i < 4 && r->fetched_count; i++)
            fetched(r);
        r->now += MR_SECOND; /* by now the worker has sent all its reports */
        rig_turn(r);
        assert_string_equal(mr_worker_leftover(r->w) ? mr_worker_leftover(r->w) : "", "");
    }
}

/* Tasks of equal priority and order go by the number of their job, and then by their index. */
static void what_is_equal_goes_by_its_number(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 6; i++) {
        rig_task(r, (mr_job_id){9 - i % 3}, 5 - i / 3, 1, OP_BLOCK, NULL);
        r->m.order[i] = 1;
    }
    rig_deliver(r);
    for (uint32_t i = 0; i < 6; i++) {
        rig_turn(r);
        assert_int_equal(r->strands[0]->items[0].job.v, 7 + i / 2);
        assert_int_equal(r->strands[0]->items[0].index, 4 + i % 2);
        rig_run(r, 0, MR_STRAND_DONE);
    }
}

/* A task that comes later and goes first moves the fetch of its object ahead of other fetches. */
static void a_better_task_hurries_the_fetch(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 10; i++) {
        rig_value(r, RIG_JOB, 300 + i, 2);
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, INPUTS((int)(300 + i)));
    }
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 3);
    rig_task(r, RIG_JOB, 20, 1, OP_BLOCK, INPUTS(307));
    r->m.priority[0] = 1;
    rig_deliver(r);
    struct mr_worker_event ev = {.kind = MR_WORKER_FETCHED,
        .fetched = {r->fetched[0].value, r->fetched[0].serial, MR_OK, {0}}};
    rig_step(r, &ev);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->last[MR_WORKER_FETCH].object.object.number, 307);
}

/* Adds the object of `bytes` bytes that task `task` needs, and the task. */
static void put_object(struct rig *r, uint32_t task, uint64_t bytes)
{
    rig_value(r, RIG_JOB, 300 + task, 2);
    r->m.bytes[r->m.down.values.objects_count - 1] = bytes;
    rig_task(r, RIG_JOB, task, 1, OP_BLOCK, INPUTS((int)(300 + task)));
}

static void end_fetch(struct rig *r, int err)
{
    struct rig_fetch f = r->fetched[0];
    struct mr_worker_event ev = {
        .kind = MR_WORKER_FETCHED, .fetched = {f.value, f.serial, err, MR_STR("")}};
    if (err) rig_unpin(r, f.serial); /* a failed fetch has no pin */
    rig_step(r, &ev);
    rig_turn(r);
}

static void objects_of_equal_tasks_go_by_job_and_index(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 6; i++) {
        mr_job_id job = {9 - i % 3};
        rig_value(r, job, 5 - i / 3, 2);
        r->m.bytes[i] = 1;
        rig_task(r, job, 10 + i, 1, OP_BLOCK, INPUTS((int)(5 - i / 3)));
        r->m.order[i] = 1;
    }
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetched_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(r->fetched[i].job.v, 7 + i / 2);
        assert_int_equal(r->fetched[i].object.number, 4 + i % 2);
    }
}

static void sixteen_objects_are_fetched_at_a_time(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 20; i++)
        put_object(r, i, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 16);
    end_fetch(r, MR_OK);
    assert_int_equal(r->fetches, 17);
    r->fetched[0] = r->fetched[1];
    end_fetch(r, MR_ELOST);
    assert_int_equal(r->fetches, 18);
}

static void a_fetch_that_does_not_fit_the_budget_waits(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 4; i++)
        put_object(r, i, (1 << 20) + (i == 2));
    rig_deliver(r);
    rig_turn(r);
    /* The fourth object would fit, but the third one comes first. */
    assert_int_equal(r->fetches, 2);
    end_fetch(r, MR_ELOST);
    assert_int_equal(r->fetches, 3);
    assert_int_equal(r->last[MR_WORKER_FETCH].object.object.number, 302);
    assert_int_equal(r->last[MR_WORKER_FETCH].object.bytes, (1 << 20) + 1);
}

/* The object is larger than the budget. The worker fetches it only when no task runs, because the
 * end of a task could free memory. */
static void an_object_above_the_budget_is_fetched_when_nothing_else_goes_on(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2; i++)
        put_object(r, i, 4 << 20);
    rig_task(r, RIG_JOB, 7, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 0);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->fetches, 1);
    end_fetch(r, MR_OK);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->fetches, 1);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->fetches, 2);
}

/* The fetch of an object above the budget waits for running tasks, and for a ready task, too. Here
 * the ready task cannot start, because the outbox is full. */
static void an_object_above_the_budget_waits_for_what_is_ready(void **state)
{
    static const struct mr_worker_config small = {.slots = 1,
        .tasks_max = 20,
        .values_max = 100,
        .outbox_max = 1,
        .bytes_max = 1 << 20,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    r->connected = false; /* one completion fills the outbox */
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    put_object(r, 3, 4 << 20);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    assert_int_equal(r->fetches, 0);
    r->connected = true;
    rig_turn(r);
    rig_run_all(r);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(r->fetches, 1);
    rig_free(&r);
}

static void a_task_of_lower_order_hurries_the_fetch(void **state)
{
    struct rig *r = *state;
    put_object(r, 1, 3 << 20); /* fills the budget */
    put_object(r, 5, 3 << 20);
    put_object(r, 7, 3 << 20);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(307));
    rig_deliver(r);
    end_fetch(r, MR_ELOST);
    assert_int_equal(r->fetches, 2);
    assert_int_equal(r->last[MR_WORKER_FETCH].object.object.number, 307);
}

/* Tasks 5, 9 and 2 wait for object 305. Task 5 goes first, so object 305 is fetched before object
 * 307, for which task 7 waits. */
static void a_worse_task_does_not_delay_the_fetch(void **state)
{
    struct rig *r = *state;
    put_object(r, 1, 3 << 20); /* fills the budget */
    put_object(r, 5, 3 << 20);
    put_object(r, 7, 3 << 20);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 9, 1, OP_BLOCK, INPUTS(305));
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(305));
    r->m.priority[1] = -1;
    rig_deliver(r);
    end_fetch(r, MR_ELOST);
    assert_int_equal(r->fetches, 2);
    assert_int_equal(r->last[MR_WORKER_FETCH].object.object.number, 305);
}

static void the_end_of_a_fetch_that_nobody_asked_for_is_ignored(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 299, 2);
    rig_value(r, RIG_JOB, 300, 2);
    rig_task(r, RIG_JOB, 0, 1, OP_BLOCK, INPUTS(300));
    rig_deliver(r); /* no task needs the first value, and its row is free */
    rig_turn(r);
    const struct rig_fetch f = r->fetched[0];
    struct mr_worker_event ev = {
        .kind = MR_WORKER_FETCHED, .fetched = {f.value - 1, f.serial, MR_OK, {0}}};
    rig_step(r, &ev);
    ev.fetched.value = f.value;
    ev.fetched.serial++;
    rig_step(r, &ev);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    ev.fetched.serial--;
    rig_step(r, &ev);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
}

#define ONE(name) cmocka_unit_test_setup_teardown(name, setup_one, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ONE(the_best_of_the_ready_tasks_starts_next),
        TEST(the_object_of_the_best_task_is_fetched_next),
        ONE(what_is_equal_goes_by_its_number),
        TEST(a_better_task_hurries_the_fetch),
        TEST(objects_of_equal_tasks_go_by_job_and_index),
        TEST(sixteen_objects_are_fetched_at_a_time),
        TEST(a_fetch_that_does_not_fit_the_budget_waits),
        TEST(an_object_above_the_budget_is_fetched_when_nothing_else_goes_on),
        cmocka_unit_test(an_object_above_the_budget_waits_for_what_is_ready),
        TEST(a_task_of_lower_order_hurries_the_fetch),
        TEST(a_worse_task_does_not_delay_the_fetch),
        TEST(the_end_of_a_fetch_that_nobody_asked_for_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
