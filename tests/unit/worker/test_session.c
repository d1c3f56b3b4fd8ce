/* The worker's core and its session with the scheduler: the scheduler goes away and returns, an
 * incarnation is revoked, a worker drains, a job is forgotten, heartbeats. Register is the worker's
 * first message on a stream. It lists the worker's tasks, and values that the scheduler may adopt.
 * Registered is the scheduler's answer. */
#include "tests/unit/worker/test.h"

static void work_goes_on_while_the_scheduler_is_away_and_is_told_on_return(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1001));
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, INPUTS(2));
    rig_task(r, RIG_JOB, 4, 1, OP_SLOW, INPUTS(99));
    rig_deliver(r);
    rig_turn(r);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_run_all(r);
    assert_int_equal(r->starts, 2);
    assert_int_equal(r->done_count, 0);
    rig_connect(r);
    assert_int_equal(r->registers, 2);
    /* The worker holds the values of tasks 2 and 3. It dropped the value of task 1 after the last
     * use. */
    assert_int_equal(r->held, 2);
    assert_int_equal(r->queued, 1);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 2, 1);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 3, 1);
    rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, 4, 1);
    rig_register(r, 9);
    /* The completion of task 1 is sent, although its value is gone. */
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].index, 1);
    rig_value(r, RIG_JOB, 99, 0);
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 4)->outcome, MR_OUTCOME_OK);
}

/* While the scheduler was away, tasks 1 and 2 ended and task 3 failed. The worker dropped the value
 * of task 1, because task 2 was its only user. Another scheduler sends tasks 1 and 3 again as
 * attempt 1. The worker must run them, not answer with the old ends. */
static void what_ended_without_a_value_is_told_by_its_absence_on_return(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_uses(r, 1);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_task(r, RIG_JOB, 3, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 3);
    assert_int_equal(s->items[0].uses, 1);
    for (uint32_t i = 0; i < 3; i++)
        rig_result(r, &s->items[i], s->items[i].index == 3 ? MR_STRAND_FAILED : MR_STRAND_DONE);
    rig_report(r, s, 3);
    rig_connect(r);
    assert_int_equal(r->held, 1);
    assert_int_equal(r->queued, 0);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 2, 1);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, NULL);
    rig_register(r, 9);
    assert_int_equal(r->done_count, 0);
    rig_run_all(r);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
    assert_int_equal(rig_find(r, 3)->outcome, MR_OUTCOME_OK);
}

static void what_is_not_adopted_goes_and_what_is_not_kept_stops(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(99));
    rig_deliver(r);
    rig_turn(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->held, 1);
    assert_int_equal(r->queued, 2);
    rig_register(r, 9);
    assert_int_equal(r->drops, 1);
    assert_int_equal(r->stops, 1);
    uint32_t before = r->done_count;
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->done_count, before); /* the new scheduler did not keep this task */
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->held, 0);
    assert_int_equal(r->queued, 0);
}

/* Attempt 2 of a task waits at the worker until attempt 1 has ended, and Register names attempt 2.
 * Attempt 1 fails before Registered comes, and Registered does not keep attempt 2. */
static void a_later_attempt_that_is_not_kept_does_not_start(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 1, 2, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->queued, 1);
    assert_int_equal(r->queued_rows[r->queued_rows_count - 1].attempt, 2);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_FAILED);
    rig_report(r, s, 1);
    rig_register(r, 9);
    rig_turn(r);
    assert_int_equal(r->strands_count, 0);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->queued, 0);
}

static void what_ended_between_register_and_registered_is_told_after_it(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->queued, 1);
    rig_run_all(r);
    assert_int_equal(r->done_count, 0);
    rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, 1, 1);
    rig_register(r, 9);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->drops, 0);
}

/* While the worker's stream is broken, the worker finds out that an input is gone. */
static void miss_an_input(struct rig *r)
{
    rig_value(r, RIG_JOB, 1, 1);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    r->connected = false;
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
    s->items[0].result.message = MR_STR("gone");
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(r->missing, 0);
}

static void what_is_missing_is_told_when_the_stream_is_back(void **state)
{
    struct rig *r = *state;
    miss_an_input(r);
    rig_connect(r);
    assert_int_equal(r->queued, 0);
    rig_register(r, 9);
    assert_int_equal(r->missing, 1);
}

/* Another scheduler may have sent the same task with the same attempt number, and with an input
 * that exists. So the worker does not report to it that the input is missing. */
static void another_scheduler_is_not_told_what_an_earlier_ones_task_missed(void **state)
{
    struct rig *r = *state;
    miss_an_input(r);
    rig_connect(r);
    r->restarts++;
    rig_register(r, 9);
    assert_int_equal(r->missing, 0);
}

/* Makes a value and starts a task that was sent as the last user of the value. Then breaks the
 * stream and opens it again. */
static void use_for_the_last_time(struct rig *r)
{
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1001));
    rig_deliver(r);
    rig_turn(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->held, 1);
    assert_int_equal(r->queued, 1);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 1, 1);
    rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, 2, 1);
}

static void a_last_use_is_one_for_the_scheduler_that_said_so(void **state)
{
    struct rig *r = *state;
    use_for_the_last_time(r);
    rig_register(r, 9);
    rig_run_all(r);
    assert_int_equal(r->drops, 1);
}

/* The earlier scheduler said which task uses the value last. The new scheduler may send other tasks
 * that use the value. So the worker keeps the value until the new scheduler releases it. */
static void another_scheduler_says_itself_what_is_not_needed_any_more(void **state)
{
    struct rig *r = *state;
    use_for_the_last_time(r);
    r->restarts++;
    rig_register(r, 9);
    rig_run_all(r);
    assert_int_equal(r->drops, 0);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    assert_int_equal(r->drops, 1);
}

static void what_is_used_between_register_and_registered_stays_for_another_scheduler(void **state)
{
    struct rig *r = *state;
    use_for_the_last_time(r);
    rig_run_all(r);
    assert_int_equal(r->drops, 0);
    r->restarts++;
    rig_register(r, 9);
    assert_int_equal(r->drops, 0);
}

static void what_is_used_between_register_and_registered_goes_for_the_same_one(void **state)
{
    struct rig *r = *state;
    use_for_the_last_time(r);
    rig_run_all(r);
    assert_int_equal(r->drops, 0);
    rig_register(r, 9);
    assert_int_equal(r->drops, 1);
}

/* Task 1 has made an object. The next message brings task 2, which reads the object slowly. */
static void an_object_that_is_read_slowly(struct rig *r)
{
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, INPUTS(1));
}

/* Task 2 runs and is the last user of the object of task 1. Register offers the object. Before the
 * answer the object is lost, so the scheduler sends task 1 again. */
static void what_was_lost_while_it_was_offered_is_let_go_with_its_last_use(void **state)
{
    struct rig *r = *state;
    use_for_the_last_time(r);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
    rig_report(r, s, 1);
    assert_int_equal(r->drops, 1); /* drops what the store may still have of the object */
    rig_task(r, RIG_JOB, 1, 2, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_register(r, 9);
    rig_run_all(r);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
    rig_task(r, RIG_JOB, 2, 2, OP_SLOW, INPUTS(1001));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(r->drops, 2);
    assert_false(mr_worker_keeps(r->w, RIG_JOB, 1));
}

static void what_the_same_scheduler_let_go_stays_let_go(void **state)
{
    struct rig *r = *state;
    an_object_that_is_read_slowly(r);
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 1, 1);
    rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, 2, 1);
    rig_register(r, 9);
    rig_run_all(r);
    assert_int_equal(r->drops, 1);
}

/* Each of two tasks finds that its input is gone: the first before the worker sends Register, the
 * second after it. So Register names only the second task, and the worker tells the new scheduler
 * only that the input of the second task is gone. */
static void what_is_missed_after_register_is_told_to_another_scheduler(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_value(r, RIG_JOB, 20 + i, 1);
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, INPUTS(20 + (int)i));
    }
    rig_deliver(r);
    rig_turn(r);
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    for (uint32_t i = 0; i < 2; i++) {
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
        rig_report(r, s, 1);
        if (i == 0) rig_connect(r);
    }
    rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, 1, 1);
    r->restarts++;
    rig_register(r, 9);
    assert_int_equal(r->missing, 1);
    assert_int_equal(r->missing_rows[0].index, 21);
}

/* The worker has the value of attempt 2, and the scheduler adopts only the value of attempt 1. The
 * worker drops its value. */
static void a_value_of_another_attempt_is_not_adopted(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 2, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_run_all(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->held, 1);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 1, 1);
    /* The worker never had this value. */
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 7, 1);
    rig_register(r, 9);
    assert_int_equal(r->drops, 1);
}

/* The earlier scheduler released an object that a running task still reads. The new scheduler
 * adopts the object, so the old release does not count. */
static void what_another_scheduler_takes_over_is_not_let_go_as_an_earlier_one_said(void **state)
{
    struct rig *r = *state;
    an_object_that_is_read_slowly(r);
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    assert_int_equal(r->drops, 0);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 1, 1);
    r->restarts++;
    rig_register(r, 9);
    rig_run_all(r);
    assert_int_equal(r->drops, 0);
    rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, 1, 1);
    rig_deliver(r);
    assert_int_equal(r->drops, 1);
}

static void a_revoked_incarnation_stops_all_and_offers_what_it_holds(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(2));
    rig_deliver(r);
    rig_turn(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_event(r, MR_WORKER_REVOKED);
    rig_connect(r);
    assert_int_equal(r->stops, 1);
    assert_int_equal(r->held, 1);
    assert_int_equal(r->queued, 0);
}

static void the_outbox_holds_back_the_start_of_more(void **state)
{
    struct rig *r = *state;
    r->connected = false;
    for (uint32_t i = 0; i < 2000; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_run_all(r);
    rig_connect(r);
    /* While 1024 completions wait in the outbox, executors get no more tasks. Tasks that executors
     * already have still run. */
    assert_true(r->held >= 1024);
    assert_true(r->held < 2000);
}

static void a_drain_hands_back_what_has_not_started_and_ends(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 6; i++)
        rig_task(r, RIG_JOB, i, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 7, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    r->m.down.drain = true;
    rig_deliver(r);
    rig_turn(r);
    assert_true(r->leaving);
    assert_int_equal(r->done_count, 5);
    assert_false(r->hung_up);
    rig_task(r, RIG_JOB, 8, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(rig_find(r, 8)->outcome, MR_OUTCOME_RETURNED);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_true(r->hung_up);
    assert_int_equal(rig_find(r, 0)->outcome, MR_OUTCOME_OK);
}

static void a_drain_does_not_wait_for_a_scheduler_that_is_away(void **state)
{
    struct rig *r = *state;
    r->connected = false;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_event(r, MR_WORKER_DRAIN);
    rig_turn(r);
    r->now += 2 * MR_SECOND;
    rig_turn(r);
    assert_true(r->hung_up);
}

static void a_fetch_request_sends_held_values_again(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_run_all(r);
    rig_ref(&r->m.down.fetch, &r->m.fetch, RIG_JOB, 1, 1);
    rig_ref(&r->m.down.fetch, &r->m.fetch, RIG_JOB, 2, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 2);
    assert_int_equal(r->unknown, 1);
}

static void a_forgotten_job_leaves_nothing_behind(void **state)
{
    struct rig *r = *state;
    an_object_that_is_read_slowly(r);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(2, 1));
    rig_value(r, RIG_JOB, 9, 2);
    rig_task(r, RIG_JOB, 4, 1, OP_INC, INPUTS(9));
    rig_deliver(r);
    rig_turn(r);
    r->m.forget[0] = RIG_JOB;
    r->m.down.forget_jobs = r->m.forget;
    r->m.down.forget_jobs_count = 1;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->drops, 1);
    assert_int_equal(r->unpins, 1);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    assert_int_equal(r->held, 0);
    assert_int_equal(r->queued, 0);
}

static void heartbeats_come_in_time_and_name_what_runs_long(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_deadline(r->w), r->now + 500 * MR_MS);
    r->now += 500 * MR_MS;
    rig_turn(r);
    assert_int_equal(r->heartbeats, 2);
    assert_int_equal(r->heartbeat.running, 1);
    assert_int_equal(r->heartbeat.running_tasks.count, 1);
    assert_int_equal(r->heartbeat.sequence, 2);
}

static void a_worker_without_work_is_heard_less_often(void **state)
{
    struct rig *r = *state;
    assert_int_equal(r->heartbeats, 1);
    mr_time due = mr_worker_deadline(r->w);
    assert_true(due > r->now + 500 * MR_MS);
    assert_true(due <= r->now + RIG_LEASE / 3);
    r->now += 600 * MR_MS;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_deliver(r);
    rig_turn(r);
    /* The postponed heartbeat is sent as soon as there is work. */
    assert_int_equal(r->heartbeats, 2);
    assert_true(mr_worker_deadline(r->w) <= r->now + 500 * MR_MS);
}

static void a_stream_that_takes_nothing_does_not_keep_the_worker_awake(void **state)
{
    struct rig *r = *state;
    r->connected = false; /* a send is under way and never ends */
    rig_turn(r);
    r->now += 10 * MR_SECOND;
    rig_turn(r);
    assert_true(mr_worker_deadline(r->w) > r->now);
}

static void a_chain_behind_a_slow_task_does_not_keep_the_worker_awake(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    r->now += MR_MS;
    rig_turn(r);
    /* The next deadline is the heartbeat's. */
    assert_true(mr_worker_deadline(r->w) >= r->now + 100 * MR_MS);
}

static void a_message_before_the_answer_to_register_is_applied(void **state)
{
    struct rig *r = *state;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 1, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->unknown, 0); /* the cancel waits for the answer to Register */
    rig_register(r, 9);
    assert_int_equal(r->unknown, 1);
}

/* Operators and nodes are numbered anew in each session. */
static void a_session_has_tables_of_its_own(void **state)
{
    static const struct mr_str names[] = {MR_STR_INIT("ref"), MR_STR_INIT("inc")};
    static const struct mr_ws_node nodes[] = {{MR_STR_INIT("unix:new"), {79}}};
    struct rig *r = *state;
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    r->m.registered = (struct mr_ws_registered){
        .incarnation = 9, .epoch = 1, .scheduler = 1, .heartbeat_ns = MR_SECOND};
    r->m.down.registered = &r->m.registered;
    r->m.down.ops = names;
    r->m.down.ops_count = MR_ARRAY_LEN(names);
    r->m.down.nodes = nodes;
    r->m.down.nodes_count = MR_ARRAY_LEN(nodes);
    rig_value(r, RIG_JOB, 20, 1);
    rig_task(r, RIG_JOB, 1, 1, 1, INPUTS(20));
    rig_deliver(r);
    rig_turn(r);
    const struct mr_strand *s = r->strands[0];
    assert_int_equal(s->items[0].op, OP_REF - 1);
    assert_int_equal(s->nodes[s->items[0].inputs[0].node].id.v, 79);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(work_goes_on_while_the_scheduler_is_away_and_is_told_on_return),
        TEST(what_ended_without_a_value_is_told_by_its_absence_on_return),
        TEST(what_is_not_adopted_goes_and_what_is_not_kept_stops),
        TEST(a_later_attempt_that_is_not_kept_does_not_start),
        TEST(what_ended_between_register_and_registered_is_told_after_it),
        TEST(what_is_missing_is_told_when_the_stream_is_back),
        TEST(another_scheduler_is_not_told_what_an_earlier_ones_task_missed),
        TEST(a_last_use_is_one_for_the_scheduler_that_said_so),
        TEST(another_scheduler_says_itself_what_is_not_needed_any_more),
        TEST(what_is_used_between_register_and_registered_stays_for_another_scheduler),
        TEST(what_is_used_between_register_and_registered_goes_for_the_same_one),
        TEST(what_was_lost_while_it_was_offered_is_let_go_with_its_last_use),
        TEST(a_value_of_another_attempt_is_not_adopted),
        TEST(what_the_same_scheduler_let_go_stays_let_go),
        TEST(what_is_missed_after_register_is_told_to_another_scheduler),
        TEST(what_another_scheduler_takes_over_is_not_let_go_as_an_earlier_one_said),
        TEST(a_revoked_incarnation_stops_all_and_offers_what_it_holds),
        TEST(the_outbox_holds_back_the_start_of_more),
        TEST(a_drain_hands_back_what_has_not_started_and_ends),
        TEST(a_drain_does_not_wait_for_a_scheduler_that_is_away),
        TEST(a_fetch_request_sends_held_values_again),
        TEST(a_forgotten_job_leaves_nothing_behind),
        TEST(heartbeats_come_in_time_and_name_what_runs_long),
        TEST(a_worker_without_work_is_heard_less_often),
        TEST(a_stream_that_takes_nothing_does_not_keep_the_worker_awake),
        TEST(a_chain_behind_a_slow_task_does_not_keep_the_worker_awake),
        TEST(a_message_before_the_answer_to_register_is_applied),
        TEST(a_session_has_tables_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
