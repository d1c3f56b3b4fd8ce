/* The worker's core: how it answers the messages `cancel`, `steal`, `leave` and `fetch`. A new
 * session with the scheduler gives no answers of the session before. The tests also check what
 * becomes of tasks that did not run or that no one wants any more. */
#include "tests/unit/worker/test.h"

#define OTHER_JOB ((mr_job_id){6})

static struct heard { /* the worker's answers since the last call of `listen`, in order */
    struct answer {
        char kind; /* type of the answer: 'g' given, 's' started, 'u' unknown, 'l' left */
        uint64_t job;
        uint32_t index, attempt;
    } answers[64];
    uint32_t count, runs;
} heard;

static void hear_refs(char kind, const struct mr_ws_refs *refs)
{
    struct mr_ws_walk walk = {.runs = refs->runs};
    heard.runs += refs->runs_count;
    for (uint32_t i = 0; i < refs->count && heard.count < MR_ARRAY_LEN(heard.answers); i++)
        heard.answers[heard.count++] = (struct answer){
            kind, mr_ws_walk_next(&walk).v, refs->index[i], mr_ws_attempt_of(refs, i)};
}

static void hear(struct rig *r, const struct mr_ws_up *up)
{
    (void)r;
    hear_refs('g', &up->given);
    hear_refs('s', &up->started);
    hear_refs('u', &up->unknown);
    hear_refs('l', &up->left_slot);
}

static void listen(struct rig *r)
{
    heard = (struct heard){0};
    r->on_up = hear;
}

static void is_answer(uint32_t i, char kind, mr_job_id job, uint32_t index, uint32_t attempt)
{
    assert_true(i < heard.count);
    assert_int_equal(heard.answers[i].kind, kind);
    assert_int_equal(heard.answers[i].job, job.v);
    assert_int_equal(heard.answers[i].index, index);
    assert_int_equal(heard.answers[i].attempt, attempt);
}

static void cancel(struct rig *r, mr_job_id job, uint32_t index, uint32_t attempt)
{
    rig_ref(&r->m.down.cancel, &r->m.cancel, job, index, attempt);
}

static void steal(struct rig *r, mr_job_id job, uint32_t index, uint32_t attempt)
{
    rig_ref(&r->m.down.steal, &r->m.steal, job, index, attempt);
}

static void deliver(struct rig *r)
{
    rig_deliver(r);
    rig_turn(r);
}

/* Starts task `index` of an operator that blocks. */
static void start(struct rig *r, uint32_t index, uint32_t attempt)
{
    rig_task(r, RIG_JOB, index, attempt, OP_BLOCK, NULL);
    deliver(r);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void each_answer_names_its_task(void **state)
{
    struct rig *r = *state;
    listen(r);
    cancel(r, RIG_JOB, 1, 1);
    cancel(r, RIG_JOB, 2, 3);
    cancel(r, OTHER_JOB, 1, 1);
    steal(r, RIG_JOB, 4, 1);
    deliver(r);
    assert_int_equal(heard.count, 4);
    assert_int_equal(heard.runs, 3); /* a new run of rows begins when the job changes */
    is_answer(0, 'u', RIG_JOB, 1, 1);
    is_answer(1, 'u', RIG_JOB, 2, 3);
    is_answer(2, 'u', OTHER_JOB, 1, 1);
    is_answer(3, 'u', RIG_JOB, 4, 1);
    cancel(r, OTHER_JOB, 9, 1); /* the next message has answers of its own */
    deliver(r);
    is_answer(4, 'u', OTHER_JOB, 9, 1);
    assert_int_equal(heard.count, 5);
    assert_int_equal(heard.runs, 4);
}

static void what_is_given_back_is_said_at_once_and_by_its_number(void **state)
{
    struct rig *r = *state;
    listen(r);
    rig_task(r, RIG_JOB, 1, 2, OP_INC, INPUTS(90));
    rig_task(r, OTHER_JOB, 2, 3, OP_INC, INPUTS(90));
    deliver(r);
    steal(r, OTHER_JOB, 2, 3);
    steal(r, RIG_JOB, 1, 2);
    deliver(r);
    assert_int_equal(heard.count, 2);
    is_answer(0, 'g', OTHER_JOB, 2, 3);
    is_answer(1, 'g', RIG_JOB, 1, 2);
    assert_int_equal(r->done_count, 0);
    assert_null(mr_worker_leftover(r->w));
}

static void a_steal_of_a_task_that_is_being_stopped_is_answered_at_once(void **state)
{
    struct rig *r = *state;
    listen(r);
    start(r, 1, 4);
    cancel(r, RIG_JOB, 1, 4);
    deliver(r);
    assert_int_equal(r->stops, 1);
    r->hold_cuts = true;
    steal(r, RIG_JOB, 1, 4);
    deliver(r);
    assert_int_equal(heard.count, 1);
    is_answer(0, 's', RIG_JOB, 1, 4);
    rig_run(r, 0, MR_STRAND_STOPPED);
    rig_turn(r);
    assert_int_equal(heard.count, 1); /* the steal is not answered a second time */
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_CANCELLED);
}

/* A steal makes the core ask the executor whether the task has begun. The executor says that it
 * has, so the worker answers the steal with "started". The completion, which comes later, adds no
 * second answer. */
static void a_steal_of_a_running_task_is_answered_once(void **state)
{
    struct rig *r = *state;
    listen(r);
    start(r, 1, 2);
    steal(r, RIG_JOB, 1, 2);
    deliver(r);
    assert_int_equal(heard.count, 1);
    is_answer(0, 's', RIG_JOB, 1, 2);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(heard.count, 1);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
}

static void long_tasks_have_left_their_slots(void **state)
{
    struct rig *r = *state;
    listen(r);
    rig_task(r, RIG_JOB, 1, 1, OP_ROLE, NULL);
    rig_task(r, OTHER_JOB, 2, 5, OP_ROLE, NULL);
    deliver(r);
    rig_ref(&r->m.down.leave, &r->m.leave, OTHER_JOB, 2, 5);
    rig_ref(&r->m.down.leave, &r->m.leave, RIG_JOB, 1, 1);
    deliver(r);
    assert_int_equal(heard.count, 2);
    is_answer(0, 'l', OTHER_JOB, 2, 5);
    is_answer(1, 'l', RIG_JOB, 1, 1);
}

/* The completion of the task answers the fetch, so "unknown" is not sent. */
static void a_fetch_of_a_value_that_is_being_made_is_not_unknown(void **state)
{
    struct rig *r = *state;
    listen(r);
    start(r, 1, 1);
    rig_ref(&r->m.down.fetch, &r->m.fetch, RIG_JOB, 1, 1);
    rig_ref(&r->m.down.fetch, &r->m.fetch, OTHER_JOB, 1, 7);
    deliver(r);
    assert_int_equal(heard.count, 1);
    is_answer(0, 'u', OTHER_JOB, 1, 7);
    assert_int_equal(r->done_count, 0);
}

static void a_new_session_does_not_give_the_answers_of_the_last_one(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_ROLE, NULL);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(90));
    rig_task(r, RIG_JOB, 3, 1, OP_BLOCK, NULL);
    deliver(r);
    cancel(r, RIG_JOB, 3, 1);
    deliver(r);
    listen(r);
    r->connected = false; /* the stream takes no message */
    rig_ref(&r->m.down.leave, &r->m.leave, RIG_JOB, 1, 1);
    steal(r, RIG_JOB, 2, 1);
    steal(r, RIG_JOB, 3, 1);
    cancel(r, RIG_JOB, 4, 1);
    deliver(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    for (uint32_t i = 0; i < r->queued_rows_count; i++)
        rig_ref(&r->m.registered.keep, &r->m.keep, RIG_JOB, r->queued_rows[i].index, 1);
    rig_register(r, 9);
    assert_int_equal(heard.count, 0);
    cancel(r, RIG_JOB, 5, 1);
    deliver(r);
    assert_int_equal(heard.count, 1);
    is_answer(0, 'u', RIG_JOB, 5, 1);
}

static void a_session_with_too_many_answers_begins_anew(void **state)
{
    struct rig *r = *state;
    uint32_t connects = r->connects;
    r->connected = false;
    for (uint32_t n = 0; n < 256; n++) { /* one session may keep as many answers as this: 1 << 20 */
        for (uint32_t i = 0; i < RIG_ROWS; i++)
            cancel(r, RIG_JOB, i, 1);
        rig_deliver(r);
    }
    rig_turn(r);
    assert_int_equal(r->connects, connects);
    cancel(r, RIG_JOB, 1, 1);
    deliver(r);
    assert_int_equal(r->connects, connects + 1);
    rig_connect(r);
    rig_register(r, 9);
    assert_int_equal(r->unknown, 0);
    assert_int_equal(r->connects, connects + 1);
}

/* ---- what did not run ------------------------------------------------------------------------ */

/* Task 1 made an object. Task 3, the last user of the object, stands behind task 2 in a strand. */
static struct mr_strand *last_use_behind(struct rig *r)
{
    rig_task(r, RIG_JOB, 1, 1, OP_INC, NULL);
    rig_extra(r)->want_object = true;
    rig_value(r, RIG_JOB, 20, 0);
    rig_deliver(r);
    rig_run_all(r);
    rig_value(r, RIG_JOB, 20, 0);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(20));
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(1001, 20));
    deliver(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 2);
    return r->strands[0];
}

static void what_was_cut_off_has_not_used_its_inputs(void **state)
{
    struct rig *r = *state;
    for (uint32_t how = 0; how < 3; how++) {
        struct mr_strand *s = last_use_behind(r);
        if (how == 0) cancel(r, RIG_JOB, 3, 1);
        if (how == 1) steal(r, RIG_JOB, 3, 1);
        if (how == 2) r->m.down.drain = true;
        deliver(r);
        assert_int_equal(s->count, 1);
        assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
        rig_run_all(r);
        assert_int_equal(r->drops, how);
        for (uint32_t i = 1; i < 3; i++)
            rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, i, 1);
        deliver(r);
        assert_int_equal(r->drops, how + 1);
        r->now += MR_SECOND;
        rig_turn(r);
        /* the worker has nothing of the job any more, not even the bytes of inputs */
        assert_null(mr_worker_leftover(r->w));
    }
}

static void what_is_no_longer_wanted_has_not_used_its_inputs(void **state)
{
    struct rig *r = *state;
    (void)last_use_behind(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_ref(&r->m.registered.adopt, &r->m.adopt, RIG_JOB, 1, 1);
    rig_register(r, 9); /* the new scheduler keeps neither task 2 nor task 3 */
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
    assert_int_equal(r->drops, 0);
}

/* The new scheduler does not keep the task. It still has to learn which object is gone. */
static void a_lost_input_is_told_even_if_its_task_is_not_wanted(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 20, 1);
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, INPUTS(20));
    deliver(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_register(r, 9); /* the new scheduler does not keep the task */
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
    rig_report(r, s, 1);
    rig_turn(r);
    assert_int_equal(r->missing, 1);
    assert_int_equal(r->missing_rows[0].index, 20);
    assert_int_equal(r->done_count, 0);
    /* frees the error text of the missing input, which the last message has borrowed */
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w));
}

static void what_ran_and_is_not_wanted_is_dropped(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
        if (i) rig_extra(r)->want_object = true;
    }
    deliver(r);
    rig_event(r, MR_WORKER_DISCONNECTED);
    rig_connect(r);
    rig_register(r, 9); /* the new scheduler keeps neither task 0 nor task 1 */
    rig_run(r, 0, MR_STRAND_DONE);
    assert_int_equal(r->drops, 0); /* a small value leaves nothing to drop */
    rig_run(r, 0, MR_STRAND_DONE);
    assert_int_equal(r->drops, 1);
    assert_true(mr_object_id_eq(r->last[MR_WORKER_DROP].object.object, (mr_object_id){1, 1}));
    assert_int_equal(r->last[MR_WORKER_DROP].object.job.v, RIG_JOB.v);
    rig_turn(r);
    assert_int_equal(r->done_count, 0);
    assert_null(mr_worker_leftover(r->w));
}

/* Two tasks read one object, which is gone. The second task is being stolen when its executor
 * reports that the input is gone. */
static void a_stolen_task_that_lost_its_input_is_answered_once(void **state)
{
    struct rig *r = *state;
    listen(r);
    rig_value(r, RIG_JOB, 20, 1);
    for (uint32_t i = 1; i < 3; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, INPUTS(20));
    deliver(r);
    r->hold_cuts = true;
    steal(r, RIG_JOB, 2, 1);
    deliver(r);
    struct mr_strand *stolen = r->strands[1];
    for (uint32_t i = 0; i < 2; i++) {
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
        s->items[0].result.message = MR_STR("gone");
        rig_report(r, s, 1);
    }
    struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {stolen->id, 1}};
    rig_step(r, &cut);
    rig_turn(r);
    assert_int_equal(heard.count, 1);
    is_answer(0, 's', RIG_JOB, 2, 1);
    for (uint32_t i = 1; i < 3; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_LOST_INPUT);
    assert_int_equal(r->missing, 2);
    rig_turn(r);
    assert_null(mr_worker_leftover(r->w));
}

/* Two running tasks read an object that goes away. The second task reports the missing input only
 * after the worker has received that value again. So the worker runs the second task again. */
static void what_finds_its_input_somewhere_else_runs_again(void **state)
{
    struct rig *r = *state;
    for (uint32_t how = 0; how < 2; how++) {
        uint32_t first = 10 * how;
        rig_value(r, RIG_JOB, 20 + how, 2);
        for (uint32_t i = 0; i < 2; i++)
            rig_task(r, RIG_JOB, first + i, 1, OP_BLOCK, INPUTS(20 + (int)how));
        deliver(r);
        struct mr_worker_event ev = {
            .kind = MR_WORKER_FETCHED, .fetched = {r->fetch_value, r->fetch_serial, MR_OK, {0}}};
        rig_step(r, &ev);
        rig_turn(r);
        assert_int_equal(r->strands_count, 2);
        struct mr_strand *both[] = {r->strands[0], r->strands[1]};
        rig_result(r, &both[0]->items[0], MR_STRAND_INPUT_GONE);
        rig_report(r, both[0], 1);
        rig_turn(r);
        assert_int_equal(rig_find(r, first)->outcome, MR_OUTCOME_LOST_INPUT);
        /* the value is sent as a small value in the first round, as an object in the second */
        rig_value(r, RIG_JOB, 20 + how, how);
        rig_task(r, RIG_JOB, 90, 1, OP_BLOCK, INPUTS(20 + (int)how, 91));
        deliver(r);
        uint32_t starts = r->starts;
        rig_result(r, &both[1]->items[0], MR_STRAND_INPUT_GONE);
        rig_report(r, both[1], 1);
        rig_turn(r);
        assert_int_equal(r->starts, starts + 1);
        rig_run_all(r);
        assert_int_equal(rig_find(r, first + 1)->outcome, MR_OUTCOME_OK);
        assert_int_equal(r->missing, 1 + how);
        cancel(r, RIG_JOB, 90, 1);
        deliver(r);
    }
}

/* A task fails because its input is lost. Before that the task was cancelled, or the worker began
 * to drain. The scheduler still learns that the input is lost. */
static void a_lost_input_of_a_task_that_would_not_run_again_is_told(void **state)
{
    struct rig *r = *state;
    for (uint32_t how = 0; how < 2; how++) {
        rig_value(r, RIG_JOB, 20 + how, 1);
        rig_task(r, RIG_JOB, how, 1, OP_BLOCK, INPUTS(20 + (int)how));
        deliver(r);
        if (how == 0) cancel(r, RIG_JOB, 0, 1);
        if (how == 1) r->m.down.drain = true;
        deliver(r);
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
        rig_report(r, s, 1);
        rig_turn(r);
        assert_int_equal(
            rig_find(r, how)->outcome, how ? MR_OUTCOME_RETURNED : MR_OUTCOME_CANCELLED);
        assert_int_equal(r->missing, how + 1);
    }
}

static void what_finds_no_room_goes_back_from_a_worker_that_drains(void **state)
{
    struct rig *r = *state;
    start(r, 1, 1);
    start(r, 2, 1);
    r->m.down.drain = true;
    deliver(r);
    rig_run(r, 0, MR_STRAND_NO_ROOM);
    rig_run(r, 0, MR_STRAND_STORE_GONE);
    rig_turn(r);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_RETURNED);
        assert_int_equal(rig_find(r, i)->code, MR_OK);
    }
}

/* The worker must answer for the attempt that the scheduler named. If it did not answer, the
 * scheduler would take the later attempt's completion for the answer. */
static void an_older_attempt_of_a_value_that_is_here_is_unknown(void **state)
{
    struct rig *r = *state;
    listen(r);
    start(r, 1, 2);
    rig_run_all(r);
    cancel(r, RIG_JOB, 1, 1);
    steal(r, RIG_JOB, 1, 1);
    cancel(r, RIG_JOB, 1, 2);
    deliver(r);
    assert_int_equal(heard.count, 2);
    for (uint32_t i = 0; i < 2; i++)
        is_answer(i, 'u', RIG_JOB, 1, 1);
}

/* Two of five values fit into one message. One more completion comes before the next message. */
static void completions_that_wait_for_the_next_message_stay_in_order(void **state)
{
    static const char bytes[100000];
    struct rig *r = *state;
    r->connected = false;
    for (uint32_t i = 0; i < 6; i++)
        start(r, i, 1);
    for (uint32_t i = 0; i < 6; i++) {
        if (i == 5) {
            struct mr_worker_event turn = {.kind = MR_WORKER_TURN, .turn = {.may_send = true}};
            rig_step(r, &turn);
            assert_int_equal(r->done_count, 2);
        }
        struct mr_strand *s = r->strands[0];
        rig_result(r, &s->items[0], MR_STRAND_DONE);
        s->items[0].result.pack = mr_str_of(bytes, sizeof bytes);
        rig_report(r, s, 1);
        rig_turn(r);
    }
    r->connected = true;
    rig_turn(r);
    assert_int_equal(r->done_count, 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(r->done[i].index, i);
}

static void a_task_that_leaves_its_slot_is_named(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 4; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    deliver(r);
    rig_run_all(r); /* the strands that are used below have had other items before */
    listen(r);
    start(r, 8, 3);
    rig_ref(&r->m.down.leave, &r->m.leave, RIG_JOB, 8, 3);
    deliver(r);
    assert_int_equal(r->moves, 1);
    assert_int_equal(heard.count, 1);
    is_answer(0, 'l', RIG_JOB, 8, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_answer_names_its_task),
        TEST(what_is_given_back_is_said_at_once_and_by_its_number),
        TEST(a_steal_of_a_task_that_is_being_stopped_is_answered_at_once),
        TEST(a_steal_of_a_running_task_is_answered_once),
        TEST(long_tasks_have_left_their_slots),
        TEST(a_fetch_of_a_value_that_is_being_made_is_not_unknown),
        TEST(a_new_session_does_not_give_the_answers_of_the_last_one),
        TEST(a_session_with_too_many_answers_begins_anew),
        TEST(what_was_cut_off_has_not_used_its_inputs),
        TEST(what_is_no_longer_wanted_has_not_used_its_inputs),
        TEST(a_lost_input_is_told_even_if_its_task_is_not_wanted),
        TEST(what_ran_and_is_not_wanted_is_dropped),
        TEST(a_stolen_task_that_lost_its_input_is_answered_once),
        TEST(what_finds_its_input_somewhere_else_runs_again),
        TEST(a_lost_input_of_a_task_that_would_not_run_again_is_told),
        TEST(what_finds_no_room_goes_back_from_a_worker_that_drains),
        TEST(an_older_attempt_of_a_value_that_is_here_is_unknown),
        TEST(completions_that_wait_for_the_next_message_stay_in_order),
        TEST(a_task_that_leaves_its_slot_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
