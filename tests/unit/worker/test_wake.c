/* The worker's core: when it acts without an event from outside. The tests check how long a
 * completion waits for others, when a result has to wake the core (mr_worker_wake_after), when
 * heartbeats are due, and what a heartbeat lists. A strand is a list of tasks that one executor
 * runs back to back. */
#include "tests/unit/worker/test.h"

/* Sends tasks 0 to `n` - 1 of operator `op`, and a task that needs all of their values. No other
 * task or client wants these values. */
static void many_and_one_of(struct rig *r, mr_job_id job, uint32_t n, uint32_t op)
{
    static int inputs[RIG_ROWS];
    for (uint32_t i = 0; i < n; i++) {
        rig_task(r, job, i, 1, op, NULL);
        rig_uses(r, 1);
        inputs[i] = (int)i;
    }
    inputs[n] = -1;
    rig_task(r, job, 5000, 1, OP_BLOCK, inputs);
    rig_deliver(r);
    rig_turn(r);
}

static void many_and_one(struct rig *r, uint32_t n, uint32_t op)
{
    many_and_one_of(r, RIG_JOB, n, op);
}

/* Returns the strand that has task `index`; NULL: no strand has it. */
static struct mr_strand *strand_of(struct rig *r, uint32_t index)
{
    for (uint32_t i = 0; i < r->strands_count; i++)
        for (uint32_t k = 0; k < r->strands[i]->count; k++)
            if (r->strands[i]->items[k].index == index) return r->strands[i];
    return NULL;
}

/* Reports success of the next item of the strand that has task `index`. */
static void succeed(struct rig *r, uint32_t index)
{
    struct mr_strand *s = strand_of(r, index);
    rig_result(r, &s->items[s->reported], MR_STRAND_DONE);
    rig_report(r, s, s->reported + 1);
}

/* ---- completions that wait for more ---------------------------------------------------------- */

/* Ends task 0. Checks that its completion is sent exactly `wait` later. */
static void waits(struct rig *r, mr_duration wait)
{
    succeed(r, 0);
    rig_turn(r);
    assert_int_equal(r->done_count, 0);
    assert_int_equal(mr_worker_deadline(r->w), r->now + wait);
    r->now += wait - 1;
    rig_turn(r);
    assert_int_equal(r->done_count, 0);
    r->now++;
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
}

static void a_completion_waits_for_half_of_the_work_that_is_here(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 60, 1, OP_BLOCK, INPUTS(99));
    many_and_one(r, 3, OP_SLOW); /* two slots have 30 ms and 400 ns of work in all */
    waits(r, 7500100);
}

static void a_completion_waits_until_eight_milliseconds_of_work_are_left(void **state)
{
    many_and_one(*state, 4, OP_SLOW);
    waits(*state, 12000100);
}

static void a_completion_waits_24_milliseconds_at_most(void **state)
{
    many_and_one(*state, 12, OP_SLOW);
    waits(*state, 24 * MR_MS);
}

static void a_completion_waits_3_milliseconds_at_least(void **state)
{
    many_and_one(*state, 4, OP_BLOCK);
    waits(*state, 3 * MR_MS);
}

static void completions_wait_only_while_each_slot_has_a_task_and_one_more(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 4, OP_BLOCK);
    succeed(r, 0);
    rig_turn(r);
    assert_int_equal(r->done_count, 0); /* four tasks are left */
    succeed(r, 1);
    rig_turn(r);
    assert_int_equal(r->done_count, 2);
}

static void a_thousand_completions_wait_for_no_more(void **state)
{
    struct rig *r = *state;
    many_and_one_of(r, (mr_job_id){6}, 550, OP_INC);
    many_and_one_of(r, (mr_job_id){7}, 550, OP_INC);
    for (uint32_t i = 0; i < 1024; i++) {
        assert_int_equal(r->done_count, 0);
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[s->reported], MR_STRAND_DONE);
        rig_report(r, s, s->reported + 1);
        rig_turn(r);
    }
    assert_int_equal(r->done_count, 1024);
}

static void as_many_completions_as_the_outbox_takes_wait_for_no_more(void **state)
{
    static const struct mr_worker_config small = {.slots = 1,
        .tasks_max = 100,
        .values_max = 1000,
        .outbox_max = 10,
        .bytes_max = 1 << 20,
        .prefetch_bytes = 1 << 20};
    (void)state;
    struct rig *r = rig_of(&small);
    many_and_one(r, 20, OP_INC);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(r->done_count, 0);
        succeed(r, i);
        rig_turn(r);
    }
    assert_int_equal(r->done_count, 10);
    rig_free(&r);
}

static void a_worker_that_drains_holds_nothing_back(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 8, OP_BLOCK);
    succeed(r, 0);
    rig_turn(r);
    assert_int_equal(r->done_count, 0);
    r->hold_cuts = true;
    r->m.down.drain = true;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_OK);
}

/* ---- reports that need not wake the core ----------------------------------------------------- */

static void a_completion_that_has_waited_wakes_at_once(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 5, OP_BLOCK);
    succeed(r, 0);
    rig_turn(r);
    /* Tasks are ready, so one more result gives the core something to do. */
    assert_int_equal(mr_worker_wake_after(r->w), 1);
    r->now += 3 * MR_MS - 1;
    rig_event(r, MR_WORKER_TICK);
    assert_int_equal(mr_worker_wake_after(r->w), 1);
    r->now++;
    rig_event(r, MR_WORKER_TICK);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
}

static void a_completion_that_is_urgent_wakes_at_once(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 6, OP_BLOCK);
    r->connected = false; /* the completion cannot be sent yet */
    struct mr_strand *s = strand_of(r, 0);
    rig_result(r, &s->items[0], MR_STRAND_FAILED);
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
}

static void few_tasks_wake_at_once(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 2, OP_BLOCK);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
    rig_task(r, RIG_JOB, 60, 1, OP_BLOCK, INPUTS(99));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_wake_after(r->w), 2);
}

static void a_worker_that_drains_or_is_not_registered_wakes_at_once(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 2, OP_BLOCK);
    rig_task(r, RIG_JOB, 60, 1, OP_BLOCK, INPUTS(99));
    rig_deliver(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
    rig_connect(r);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
}

static void a_task_with_a_timeout_wakes_at_once(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 1, OP_BLOCK);
    for (uint32_t i = 0; i < 3; i++)
        rig_task(r, RIG_JOB, 60 + i, 1, OP_BLOCK, INPUTS(99));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_wake_after(r->w), 1);
    rig_task(r, RIG_JOB, 70, 1, OP_BLOCK, NULL);
    rig_uses(r, 1);
    rig_extra(r)->timeout_ns = MR_SECOND;
    rig_task(r, RIG_JOB, 71, 1, OP_BLOCK, INPUTS(70));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
}

static void a_long_running_task_counts_too(void **state)
{
    struct rig *r = *state;
    many_and_one(r, 2, OP_BLOCK);
    rig_task(r, RIG_JOB, 60, 1, OP_BLOCK, INPUTS(99));
    /* Other processes may want the value of task 61, so the end of task 61 is urgent. */
    rig_task(r, RIG_JOB, 61, 1, OP_ROLE, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 3);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
}

/* The core looks at 256 users of a value at most. If a value has more, its completion counts as
 * urgent. */
static void a_value_with_more_users_than_are_looked_at_wakes_at_once(void **state)
{
    struct rig *r = *state;
    for (uint32_t users = 256; users <= 257; users++) {
        uint32_t first = 1000 * (users - 255);
        mr_job_id job = {users};
        rig_task(r, job, 0, 1, OP_BLOCK, NULL);
        rig_uses(r, users);
        for (uint32_t i = 0; i < users; i++)
            rig_task(r, job, first + i, 1, OP_BLOCK, INPUTS(0));
        rig_deliver(r);
        rig_turn(r);
        assert_int_equal(mr_worker_wake_after(r->w), users == 256 ? 1 : 0);
    }
}

/* Tasks 0 to 3 run. Task 50 needs three of their values, task 51 needs two, and task 52 also needs
 * a value that is not here. */
static void the_first_task_that_can_start_decides(void **state)
{
    struct rig *r = *state;
    static const uint32_t uses[] = {3, 2, 1, 1};
    for (uint32_t i = 0; i < 4; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_uses(r, uses[i]);
    }
    rig_task(r, RIG_JOB, 50, 1, OP_BLOCK, INPUTS(0, 1, 2));
    rig_task(r, RIG_JOB, 51, 1, OP_BLOCK, INPUTS(0, 1));
    rig_task(r, RIG_JOB, 52, 1, OP_BLOCK, INPUTS(0, 99));
    rig_task(r, RIG_JOB, 53, 1, OP_BLOCK, INPUTS(3));
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 53, 1);
    rig_task(r, RIG_JOB, 54, 1, OP_BLOCK, INPUTS(3, 99));
    rig_deliver(r);
    rig_turn(r);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(mr_worker_wake_after(r->w), 2);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 51, 1);
    rig_deliver(r);
    rig_turn(r);
    /* Values 0 and 1 have three and two uses. Without task 51, fewer tasks of this worker use each
     * value, so other processes may want the value. */
    assert_int_equal(mr_worker_wake_after(r->w), 0);
}

static void without_a_task_that_could_start_all_results_may_come_first(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 3; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_uses(r, 1);
    }
    rig_task(r, RIG_JOB, 50, 1, OP_BLOCK, INPUTS(0, 99));
    rig_task(r, RIG_JOB, 51, 1, OP_BLOCK, INPUTS(1, 2, 99));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_wake_after(r->w), 3);
}

/* While a task is ready, mr_worker_wake_after looks only at the next result of each strand. The
 * results of tasks 1 and 2 must wake the core at once, but they come after the result of task 0. */
static void only_the_next_results_count_while_tasks_are_ready(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 4; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    /* The scheduler sends the number of uses for tasks 0 and 3 only. So the core must assume that
     * other processes may want the values of tasks 1 and 2. */
    rig_uses(r, 1);
    r->m.uses[0] = 1;
    rig_task(r, RIG_JOB, 50, 1, OP_BLOCK, INPUTS(0, 3, 99));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 4);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
    rig_task(r, RIG_JOB, 60, 1, OP_BLOCK, NULL);
    rig_uses(r, 1);
    rig_task(r, RIG_JOB, 61, 1, OP_BLOCK, INPUTS(60));
    rig_task(r, RIG_JOB, 62, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r); /* task 60 runs, and task 62 waits for a slot */
    assert_int_equal(mr_worker_wake_after(r->w), 1);
    succeed(r, 0);
    assert_int_equal(mr_worker_wake_after(r->w), 0);
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

static void a_worker_without_work_is_heard_three_times_a_lease(void **state)
{
    struct rig *r = *state;
    mr_time first = r->now;
    assert_int_equal(r->heartbeats, 1);
    assert_int_equal(mr_worker_deadline(r->w), first + RIG_LEASE / 3);
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_deadline(r->w), first + 500 * MR_MS);
    r->now += 100 * MR_MS;
    succeed(r, 1);
    rig_turn(r);
    /* The scheduler does not know yet that a task is done and how many bytes are held. */
    assert_int_equal(mr_worker_deadline(r->w), first + 500 * MR_MS);
    r->now = first + 500 * MR_MS;
    rig_turn(r);
    assert_int_equal(r->heartbeats, 2);
    assert_int_equal(r->heartbeat.tasks_done, 1);
    assert_int_equal(r->heartbeat.held_bytes, 1);
    assert_int_equal(mr_worker_deadline(r->w), r->now + RIG_LEASE / 3);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_deadline(r->w), r->now + 500 * MR_MS);
}

/* Registers the worker again with another heartbeat interval and lease. Returns the time until the
 * heartbeat after the first one. */
static mr_duration interval(struct rig *r, mr_duration heartbeat, mr_duration lease)
{
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    for (uint32_t i = 0; i < r->queued_rows_count; i++)
        rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, r->queued_rows[i].index, 1);
    r->m.registered.incarnation = 9;
    r->m.registered.epoch = 1;
    r->m.registered.scheduler = 1;
    r->m.registered.heartbeat_ns = heartbeat;
    r->m.registered.lease_ns = lease;
    r->m.down.registered = &r->m.registered;
    uint32_t heartbeats = r->heartbeats;
    rig_deliver(r);
    rig_turn(r);
    r->m.registered.keep = (struct mr_ws_refs){0};
    assert_int_equal(r->heartbeats, heartbeats + 1); /* a heartbeat is due at once after Register */
    return mr_worker_deadline(r->w) - r->now;
}

static void the_interval_of_heartbeats_has_bounds(void **state)
{
    struct rig *r = *state;
    assert_int_equal(interval(r, 500 * MR_MS, MR_SECOND), 500 * MR_MS);
    assert_int_equal(interval(r, 500 * MR_MS, 1500 * MR_MS), 500 * MR_MS);
    assert_int_equal(interval(r, 500 * MR_MS, 1503 * MR_MS), 501 * MR_MS);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_register(r, 9); /* this Register is answered with the names of operators */
    for (uint32_t i = 0; i < 2; i++)
        rig_task(r, RIG_JOB, i, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(interval(r, MR_MS, MR_SECOND), 10 * MR_MS);
    assert_int_equal(interval(r, 11 * MR_MS, MR_SECOND), 11 * MR_MS);
    assert_int_equal(interval(r, 20 * MR_SECOND, 90 * MR_SECOND), 10 * MR_SECOND);
    assert_int_equal(interval(r, 9 * MR_SECOND, 90 * MR_SECOND), 9 * MR_SECOND);
}

/* A heartbeat lists a task that has run for at least 100 ms. */
static void a_heartbeat_lists_what_has_run_for_long(void **state)
{
    struct rig *r = *state;
    mr_time first = r->now;
    for (uint32_t i = 0; i < 2; i++) {
        r->now = first + 400 * MR_MS + i;
        rig_task(r, RIG_JOB, 7 + i, 3 + i, OP_SLOW, NULL);
        rig_deliver(r);
        rig_turn(r);
    }
    r->now = first + 500 * MR_MS;
    rig_turn(r);
    assert_int_equal(r->heartbeats, 2);
    assert_int_equal(r->heartbeat.running, 2);
    assert_int_equal(r->heartbeat.running_tasks.count, 1);
    assert_int_equal(r->heartbeat.running_tasks.index[0], 7);
    assert_int_equal(r->heartbeat.running_tasks.attempt[0], 3);
    assert_int_equal(r->heartbeat.running_ns[0], 100 * MR_MS);
    assert_int_equal(r->heartbeat.queued, 0);
}

/* After each task the estimate of its operator moves by an eighth of the difference to the task's
 * time. */
static void a_heartbeat_says_how_long_the_queue_is(void **state)
{
    struct rig *r = *state;
    static const struct {
        mr_duration took, queue;
    } steps[] = {{8000, 8000}, {16000, 9000}, {9000 + 8 * 2000, 11000}};
    for (uint32_t i = 0; i < MR_ARRAY_LEN(steps); i++) {
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
        rig_deliver(r);
        rig_turn(r);
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_DONE);
        s->items[0].result.duration_ns = steps[i].took;
        rig_report(r, s, 1);
        r->now += RIG_LEASE;
        for (uint32_t k = 0; k < 4; k++)
            rig_task(r, RIG_JOB, 100 + k, 1, OP_BLOCK, INPUTS(99));
        rig_deliver(r);
        rig_turn(r);
        assert_int_equal(r->heartbeat.queue_ns, 4 * steps[i].queue / 2);
        for (uint32_t k = 0; k < 4; k++)
            rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 100 + k, 1);
        rig_deliver(r);
        rig_turn(r);
    }
}

/* A task of an operator without an estimate counts as 1 ms. A task of an operator that was measured
 * as 0 ns counts as 1 ns. */
static void an_operator_that_takes_no_time_is_known_to(void **state)
{
    static const struct mr_worker_op ops[] = {{.name = MR_STR_INIT("inc")}};
    (void)state;
    const struct mr_worker_config c = {.slots = 1,
        .tasks_max = 10,
        .values_max = 100,
        .outbox_max = 10,
        .bytes_max = 1 << 20,
        .ops = ops,
        .ops_count = 1};
    struct rig *r = rig_of(&c);
    for (uint32_t i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
        rig_deliver(r);
        r->now += RIG_LEASE;
        rig_turn(r);
        assert_int_equal(r->heartbeat.queue_ns, i ? 1 : MR_MS);
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_DONE);
        s->items[0].result.duration_ns = 0;
        rig_report(r, s, 1);
        rig_turn(r);
    }
    rig_free(&r);
}

/* The operator is measured after the tasks came. */
static void the_queue_is_as_long_as_its_operators_are_known_to_take(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 5; i++)
        rig_task(r, RIG_JOB, i, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    s->items[0].result.duration_ns = 2 * MR_MS;
    rig_report(r, s, 1);
    r->now += RIG_LEASE;
    /* Executors have a task of 10 ms and two of 2 ms. Another task waits, which counts as 10 ms. */
    rig_turn(r);
    assert_int_equal(r->heartbeat.queue_ns, 12 * MR_MS);
    rig_run_all(r);
    r->now += RIG_LEASE;
    rig_turn(r);
    assert_int_equal(r->heartbeat.queue_ns, 0);
}

static void heartbeats_keep_to_what_the_scheduler_asked_within_bounds(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    r->now += MR_SECOND;
    uint32_t before = r->heartbeats;
    rig_turn(r);
    assert_int_equal(r->heartbeats, before + 1);
    assert_int_equal(r->heartbeat.queue_ns, 15 * MR_MS); /* three tasks of 10 ms share two slots */
    assert_int_equal(r->heartbeat.running, 2);
    assert_int_equal(r->heartbeat.queued, 1);
    assert_int_equal(mr_worker_deadline(r->w), r->now + 500 * MR_MS);
    r->now += 500 * MR_MS - 1;
    rig_turn(r);
    assert_int_equal(r->heartbeats, before + 1);
    assert_int_equal(r->heartbeat.running_tasks.count, 2);
    r->now += 1;
    rig_turn(r);
    assert_int_equal(r->heartbeats, before + 2);
    assert_int_equal(r->heartbeat.running_tasks.count, 2); /* each running task is listed once */
}

/* A task of a strand counts as running since the report of the task before it. */
static void a_task_runs_since_the_last_report_of_its_strand(void **state)
{
    struct rig *r = *state;
    rig_chain(r, 2, OP_INC);
    rig_deliver(r);
    rig_turn(r);
    r->now += RIG_LEASE;
    succeed(r, 0);
    rig_turn(r); /* this turn sends a heartbeat */
    assert_int_equal(r->heartbeat.running_tasks.count, 0);
    r->now += 500 * MR_MS;
    rig_turn(r);
    assert_int_equal(r->heartbeat.running_tasks.count, 1);
    assert_int_equal(r->heartbeat.running_tasks.index[0], 1);
    assert_int_equal(r->heartbeat.running_ns[0], 500 * MR_MS);
}

/* The run time of a failed task does not change the estimate of its operator. */
static void what_failed_is_not_measured(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 8000);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_FAILED);
    s->items[0].result.duration_ns = MR_SECOND;
    rig_report(r, s, 1);
    for (uint32_t i = 2; i < 4; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, INPUTS(90));
    rig_deliver(r);
    r->now += RIG_LEASE;
    rig_turn(r);
    assert_int_equal(r->heartbeat.queue_ns, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_completion_waits_for_half_of_the_work_that_is_here),
        TEST(a_completion_waits_until_eight_milliseconds_of_work_are_left),
        TEST(a_completion_waits_24_milliseconds_at_most),
        TEST(a_completion_waits_3_milliseconds_at_least),
        TEST(completions_wait_only_while_each_slot_has_a_task_and_one_more),
        TEST(a_thousand_completions_wait_for_no_more),
        cmocka_unit_test(as_many_completions_as_the_outbox_takes_wait_for_no_more),
        TEST(a_worker_that_drains_holds_nothing_back),
        TEST(a_completion_that_has_waited_wakes_at_once),
        TEST(a_completion_that_is_urgent_wakes_at_once),
        TEST(few_tasks_wake_at_once),
        TEST(a_worker_that_drains_or_is_not_registered_wakes_at_once),
        TEST(a_task_with_a_timeout_wakes_at_once),
        TEST(a_long_running_task_counts_too),
        TEST(a_value_with_more_users_than_are_looked_at_wakes_at_once),
        TEST(the_first_task_that_can_start_decides),
        TEST(without_a_task_that_could_start_all_results_may_come_first),
        TEST(only_the_next_results_count_while_tasks_are_ready),
        TEST(a_worker_without_work_is_heard_three_times_a_lease),
        TEST(the_interval_of_heartbeats_has_bounds),
        TEST(a_heartbeat_lists_what_has_run_for_long),
        TEST(a_heartbeat_says_how_long_the_queue_is),
        cmocka_unit_test(an_operator_that_takes_no_time_is_known_to),
        TEST(the_queue_is_as_long_as_its_operators_are_known_to_take),
        TEST(heartbeats_keep_to_what_the_scheduler_asked_within_bounds),
        TEST(a_task_runs_since_the_last_report_of_its_strand),
        TEST(what_failed_is_not_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
