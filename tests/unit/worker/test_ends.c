/* The worker's core: tasks that do not simply succeed. The tests check the outcome, the error and
 * the times that are reported, stops and their grace, and inputs that cannot be fetched. */
#include "tests/unit/worker/test.h"

static struct heard { /* the last failure that the worker has sent */
    uint32_t count;
    int code;
    uint64_t started, duration, cpu;
    char message[256];
} heard;

static void hear(struct rig *r, const struct mr_ws_up *up)
{
    (void)r;
    const struct mr_ws_completed *c = &up->completed;
    for (uint32_t k = 0; k < c->failures_count; k++) {
        uint32_t row = c->failures[k].row;
        heard = (struct heard){.count = heard.count + 1,
            .code = c->failures[k].code,
            .started = c->started_ns[row] ? c->base_ns + c->started_ns[row] : c->base_ns,
            .duration = c->duration_ns[row],
            .cpu = c->cpu_ns[row]};
        (void)snprintf(
            heard.message, sizeof heard.message, "%.*s", MR_STR_ARG(c->failures[k].message));
    }
}

static void nothing_is_left(struct rig *r)
{
    r->now += MR_SECOND; /* by now the worker has sent all its reports */
    rig_turn(r);
    const char *left = mr_worker_leftover(r->w);
    assert_string_equal(left ? left : "", "");
}

static void cancel(struct rig *r, uint32_t index, uint32_t attempt)
{
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, index, attempt);
    rig_deliver(r);
    rig_turn(r);
}

/* Starts one task, as attempt `attempt`. Returns its item. */
static struct mr_strand_item *run_one(struct rig *r, uint32_t index, uint32_t attempt)
{
    rig_task(r, RIG_JOB, index, attempt, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    return &r->strands[r->strands_count - 1]->items[0];
}

static const struct rig_done *end_as(
    struct rig *r, uint32_t index, enum mr_strand_end end, int code)
{
    struct mr_strand *s = r->strands[0];
    r->now += 5 * MR_MS;
    rig_result(r, &s->items[0], end);
    s->items[0].result.code = code;
    s->items[0].result.message = MR_STR("so it ended");
    rig_report(r, s, 1);
    rig_turn(r);
    return rig_find(r, index);
}

static void each_end_has_its_outcome_its_error_and_its_times(void **state)
{
    static const struct {
        enum mr_strand_end end;
        int said, told;
        enum mr_outcome outcome;
    } ends[] = {
        {MR_STRAND_FAILED, MR_EUNKNOWN, MR_EUNKNOWN, MR_OUTCOME_ERROR},
        {MR_STRAND_FAILED, MR_EINVAL, MR_EINVAL, MR_OUTCOME_BAD_ARGUMENT},
        {MR_STRAND_FAILED, MR_EFORMAT, MR_EFORMAT, MR_OUTCOME_BAD_ARGUMENT},
        {MR_STRAND_NO_ROOM, MR_EUNKNOWN, MR_ELIMIT, MR_OUTCOME_NO_ROOM},
        {MR_STRAND_STORE_GONE, MR_EAWAY, MR_EAWAY, MR_OUTCOME_LOST_INPUT},
    };
    struct rig *r = *state;
    r->on_up = hear;
    heard = (struct heard){0};
    for (uint32_t i = 0; i < MR_ARRAY_LEN(ends); i++) {
        (void)run_one(r, i, 1 + i);
        mr_time began = r->now + 5 * MR_MS;
        const struct rig_done *d = end_as(r, i, ends[i].end, ends[i].said);
        assert_int_equal(d->outcome, ends[i].outcome);
        assert_int_equal(d->attempt, 1 + i);
        assert_int_equal(heard.count, i + 1);
        assert_int_equal(heard.code, mr_err_grpc(ends[i].told));
        assert_string_equal(heard.message, "so it ended");
        assert_int_equal(heard.started, began);
        assert_int_equal(heard.duration, 200);
        assert_int_equal(heard.cpu, 150);
    }
    assert_int_equal(r->heartbeat.tasks_done, 0);
    r->now += RIG_LEASE;
    rig_turn(r);
    /* Three tasks have failed; the other two are to run again, so they do not count. */
    assert_int_equal(r->heartbeat.tasks_done, 3);
    assert_int_equal(r->heartbeat.tasks_started, 5);
}

/* The cancel came first, so the outcome is CANCELLED, whatever else went wrong. */
static void a_cancelled_task_that_found_no_room_is_cancelled(void **state)
{
    static const enum mr_strand_end ends[] = {
        MR_STRAND_NO_ROOM, MR_STRAND_STORE_GONE, MR_STRAND_STOPPED, MR_STRAND_SKIPPED};
    struct rig *r = *state;
    r->on_up = hear;
    heard = (struct heard){0};
    for (uint32_t i = 0; i < MR_ARRAY_LEN(ends); i++) {
        (void)run_one(r, i, 1);
        cancel(r, i, 1);
        assert_int_equal(end_as(r, i, ends[i], MR_ELIMIT)->outcome, MR_OUTCOME_CANCELLED);
        assert_int_equal(r->done_count, i + 1);
        assert_int_equal(heard.count, 0); /* a cancelled task has no error */
    }
    nothing_is_left(r);
}

/* ---- stops ----------------------------------------------------------------------------------- */

/* The task is told to stop only once. Its grace begins with the first of the two cancels. */
static void a_task_is_stopped_once(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_extra(r)->timeout_ns = MR_SECOND;
    rig_deliver(r);
    rig_turn(r);
    r->now += MR_SECOND / 2;
    cancel(r, 1, 1);
    assert_int_equal(r->stops, 1);
    cancel(r, 1, 1);
    assert_int_equal(r->takes, 1);
    r->now += MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    assert_true(mr_worker_deadline(r->w) > r->now);
    r->now += MR_SECOND - 1;
    rig_turn(r);
    assert_false(r->lethal);
    const struct rig_done *d = end_as(r, 1, MR_STRAND_STOPPED, MR_OK);
    assert_int_equal(d->outcome, MR_OUTCOME_CANCELLED); /* the cancel came before the timeout */
    r->now += 2 * MR_WORKER_GRACE;
    rig_turn(r);
    assert_false(r->lethal);
}

/* Only the task in the second slot has a timeout. */
static void a_timeout_is_kept_beside_other_tasks(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL);
        if (i) rig_extra(r)->timeout_ns = 300 * MR_MS;
    }
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(mr_worker_deadline(r->w), r->now + 300 * MR_MS);
    r->now += 300 * MR_MS;
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    assert_int_equal(r->last[MR_WORKER_STOP].item.strand, r->strands[1]->id);
}

/* The cancel makes the core cut the strand of the task. The task ends before the executor answers
 * the cut. */
static void what_ended_while_a_cut_is_under_way_is_not_stopped(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_extra(r)->timeout_ns = MR_SECOND;
    rig_deliver(r);
    rig_turn(r);
    r->hold_cuts = true;
    cancel(r, 1, 1);
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_DONE);
    rig_report(r, s, 1);
    r->now += 2 * MR_SECOND;
    rig_turn(r);
    assert_int_equal(r->stops, 0);
    assert_int_equal(r->heartbeat.running_tasks.count, 0);
    struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {s->id, 1}};
    rig_step(r, &cut);
    rig_turn(r);
    assert_int_equal(r->stops, 0);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_OK);
}

/* The timeout comes first, so the outcome is TIMEOUT. The task is told to stop only once. */
static void what_runs_into_its_timeout_and_is_cancelled_then_timed_out(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_extra(r)->timeout_ns = MR_SECOND;
    rig_deliver(r);
    rig_turn(r);
    r->now += MR_SECOND - 1;
    rig_turn(r);
    assert_int_equal(r->stops, 0);
    assert_int_equal(mr_worker_deadline(r->w), r->now + 1);
    r->now += 1;
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    assert_int_equal(r->last[MR_WORKER_STOP].item.at, 0);
    assert_int_equal(r->last[MR_WORKER_STOP].item.strand, r->strands[0]->id);
    cancel(r, 1, 1);
    assert_int_equal(r->stops, 1);
    /* The core has already told the task to stop, so the core does not also ask the executor to
     * give the task back (MR_WORKER_TAKE). */
    assert_int_equal(r->takes, 0);
    assert_int_equal(end_as(r, 1, MR_STRAND_STOPPED, MR_OK)->outcome, MR_OUTCOME_TIMEOUT);
}

static void a_timeout_that_is_ignored_costs_the_process(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, NULL);
    rig_extra(r)->timeout_ns = MR_SECOND;
    for (uint32_t i = 2; i < 6; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    r->now += MR_SECOND;
    rig_turn(r);
    r->now += MR_WORKER_GRACE;
    rig_turn(r);
    assert_true(r->lethal);
    assert_int_equal(rig_find(r, 1)->outcome, MR_OUTCOME_TIMEOUT);
    assert_int_equal(heard.code, mr_err_grpc(MR_ETIMEOUT));
    assert_non_null(strstr(heard.message, "ignored the request to stop"));
    for (uint32_t i = 2; i < 6; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_RETURNED);
    assert_int_equal(r->done_count, 5);
    /* The core must not spin while the process has not ended yet. */
    assert_true(mr_worker_deadline(r->w) > r->now);
    uint32_t connects = r->connects;
    r->now += 10 * MR_WORKER_GRACE;
    rig_turn(r);
    assert_int_equal(r->done_count, 5);
    assert_int_equal(r->connects, connects);
}

/* While the grace of a cancelled item runs, the executor reports the items that precede the
 * cancelled item in the strand. These reports must not make the grace begin anew. */
static void the_end_of_others_does_not_pardon_what_is_stopped(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 6; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    r->hold_cuts = true;
    cancel(r, s->items[2].index, 1);
    /* Item 2, the cancelled one, runs. */
    struct mr_worker_event cut = {.kind = MR_WORKER_CUT, .cut = {s->id, 3}};
    rig_step(r, &cut);
    assert_true(r->stops == 1 && r->stopped[2]);
    rig_turn(r);
    for (uint32_t i = 0; i < 2; i++) {
        rig_result(r, &s->items[i], MR_STRAND_DONE);
        rig_report(r, s, i + 1);
    }
    assert_true(mr_worker_deadline(r->w) <= r->now + MR_WORKER_GRACE);
    r->now += MR_WORKER_GRACE;
    rig_turn(r);
    assert_true(r->lethal);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_CANCELLED);
}

/* A task that was skipped after a failure does not count as started, and has no completion. */
static void what_was_skipped_did_not_start(void **state)
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
    r->now += RIG_LEASE;
    rig_turn(r);
    assert_int_equal(r->heartbeat.tasks_started, 1);
    assert_int_equal(r->heartbeat.tasks_done, 1);
    assert_null(rig_find(r, 1));
}

/* An attempt waits because an earlier attempt of the same task runs. A cancel with the number of
 * the waiting attempt ends that attempt and leaves the earlier one alone. */
static void an_attempt_that_waits_for_another_is_cancelled_by_its_number(void **state)
{
    struct rig *r = *state;
    const mr_job_id other = {6};
    rig_task(r, other, 7, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, other, 7, 2, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, other, 7, 2);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->stops, 0);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].job, 6);
    assert_int_equal(r->done[0].attempt, 2);
    assert_int_equal(r->done[0].outcome, MR_OUTCOME_CANCELLED);
    rig_run(r, 0, MR_STRAND_FAILED);
    rig_turn(r);
    assert_int_equal(rig_find(r, 7)->attempt, 1);
    assert_int_equal(rig_find(r, 7)->outcome, MR_OUTCOME_ERROR);
    assert_int_equal(r->strands_count, 0);
}

/* Two tasks of one strand need the same object, which is gone. The second was skipped, and cannot
 * run either. */
static void what_was_skipped_for_want_of_a_lost_input_is_lost(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 20, 1);
    rig_value(r, RIG_JOB, 21, 0);
    rig_task(r, RIG_JOB, 1, 1, OP_INC, INPUTS(20));
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(21, 20));
    rig_deliver(r);
    rig_turn(r);
    struct mr_strand *s = r->strands[0];
    assert_int_equal(s->count, 2);
    rig_result(r, &s->items[0], MR_STRAND_INPUT_GONE);
    rig_result(r, &s->items[1], MR_STRAND_SKIPPED);
    s->items[0].result.gone = 0;
    s->items[0].result.message = MR_STR("gone");
    rig_report(r, s, 2);
    rig_turn(r);
    for (uint32_t i = 1; i <= 2; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_LOST_INPUT);
    assert_int_equal(r->missing, 2);
    nothing_is_left(r);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void fetched(struct rig *r, int err, const char *why)
{
    struct mr_worker_event ev = {
        .kind = MR_WORKER_FETCHED, .fetched = {r->fetch_value, r->fetch_serial, err, mr_str(why)}};
    if (err) rig_unpin(r, r->fetch_serial); /* a failed fetch has no pin */
    rig_step(r, &ev);
    rig_turn(r);
}

/* The store has no room for an object. All tasks that wait for it end as NO_ROOM, so that the
 * scheduler sends them again later. */
static void what_finds_no_room_for_its_input_is_told_so(void **state)
{
    struct rig *r = *state;
    r->on_up = hear;
    heard = (struct heard){0};
    rig_value(r, RIG_JOB, 21, 2);
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, INPUTS(21, 21)); /* the task names the same input twice */
    rig_task(r, RIG_JOB, 2, 3, OP_SLOW, INPUTS(21));
    /* This task waits for another input, too. */
    rig_task(r, RIG_JOB, 3, 1, OP_SLOW, INPUTS(90, 21));
    rig_deliver(r);
    rig_turn(r);
    fetched(r, MR_ELIMIT, "too large");
    for (uint32_t i = 1; i <= 3; i++)
        assert_int_equal(rig_find(r, i)->outcome, MR_OUTCOME_NO_ROOM);
    assert_int_equal(r->done_count, 3);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.code, mr_err_grpc(MR_ELIMIT));
    assert_string_equal(heard.message, "too large");
    assert_int_equal(r->missing, 0); /* the object still exists, so it is not reported as missing */
    nothing_is_left(r);
}

static struct mr_ws_missing missing[8];
static uint32_t missing_count;
static char whys[8][32];

static void hear_missing(struct rig *r, const struct mr_ws_up *up)
{
    hear(r, up);
    for (uint32_t i = 0; i < up->missing_count && missing_count < 8; i++) {
        (void)snprintf(whys[missing_count], 32, "%.*s", MR_STR_ARG(up->missing[i].why));
        missing[missing_count++] = up->missing[i];
    }
}

static void what_cannot_be_fetched_is_named_for_each_that_needs_it(void **state)
{
    struct rig *r = *state;
    r->on_up = hear_missing;
    missing_count = 0;
    rig_value(r, RIG_JOB, 21, 2);
    rig_task(r, RIG_JOB, 1, 1, OP_SLOW, INPUTS(21, 21));
    rig_task(r, RIG_JOB, 2, 3, OP_SLOW, INPUTS(90, 21));
    rig_deliver(r);
    rig_turn(r);
    fetched(r, MR_ENOENT, "not there");
    assert_int_equal(missing_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t at = missing[0].index == 1 ? i : 1 - i;
        assert_int_equal(missing[at].job.v, RIG_JOB.v);
        assert_int_equal(missing[at].index, 1 + i);
        assert_int_equal(missing[at].attempt, 1 + 2 * i);
        assert_int_equal(missing[at].input, 21);
        assert_string_equal(whys[at], "not there");
        assert_int_equal(rig_find(r, 1 + i)->outcome, MR_OUTCOME_LOST_INPUT);
    }
    nothing_is_left(r);
}

/* The scheduler sends a new place of an object before the fetch has begun. The fetch uses the new
 * place. */
static void what_lies_elsewhere_now_is_fetched_from_there(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 4; i++) { /* three of the four fetches begin at once */
        rig_value(r, RIG_JOB, 20 + i, 2);
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, INPUTS((int)(20 + i)));
    }
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 3);
    rig_value(r, RIG_JOB, 23, 2);
    r->m.value_node[0] = 0; /* the same object, now on a node that this worker does not know */
    rig_value(r, RIG_JOB, 20, 2);
    /* the object of value 20 is being fetched already, so the worker ignores this new place */
    r->m.value_node[1] = 0;
    rig_deliver(r);
    fetched(r, MR_OK, "");
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->fetches, 4);
    assert_int_equal(r->last[MR_WORKER_FETCH].object.object.number, 23);
    assert_int_equal(mr_worker_node(r->w, r->last[MR_WORKER_FETCH].object.node)->id.v, 0);
    rig_value(r, RIG_JOB, 23, 1); /* value 23 is now in another object, on the worker's node */
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands[r->strands_count - 1]->items[0].index, 3);
}

/* The value was named as an object and then sent as a small value. The object is not needed, and
 * the small value stays. */
static void a_value_that_came_inline_is_not_fetched(void **state)
{
    struct rig *r = *state;
    rig_value(r, RIG_JOB, 21, 2);
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, INPUTS(21));
    rig_task(r, RIG_JOB, 2, 1, OP_BLOCK, INPUTS(21, 22));
    rig_deliver(r);
    rig_value(r, RIG_JOB, 21, 0);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 0);
    assert_int_equal(r->strands[0]->items[0].inputs[0].kind, MR_STRAND_PACK);
    rig_value(r, RIG_JOB, 21, 1); /* value 21 is named as an object again; the small value stays */
    rig_value(r, RIG_JOB, 22, 0);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->fetches, 0);
    assert_int_equal(r->strands_count, 2);
    assert_int_equal(r->strands[1]->items[0].inputs[0].kind, MR_STRAND_PACK);
}

/* Task 5 waits for a slot, and its input is to be made again. It has to wait for the new object,
 * because the worker drops the old one. */
static void an_object_that_is_asked_for_again_is_taken_from_who_has_not_begun(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    rig_run_all(r);
    for (uint32_t i = 2; i < 4; i++)
        rig_task(r, RIG_JOB, i, 1, OP_BLOCK, NULL); /* these two tasks occupy both slots */
    rig_deliver(r);
    rig_turn(r);
    rig_task(r, RIG_JOB, 5, 1, OP_BLOCK, INPUTS(1));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 2);
    rig_task(r, RIG_JOB, 1, 2, OP_BLOCK, NULL);
    rig_extra(r)->want_object = true;
    rig_deliver(r);
    assert_int_equal(r->drops, 1);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands[1]->items[0].index, 1);
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1); /* task 5 waits for the new object */
    rig_run(r, 0, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->strands[0]->items[0].index, 5);
    assert_true(mr_object_id_eq(r->strands[0]->items[0].inputs[0].object, (mr_object_id){1, 2}));
}

/* A task failed because one input found no room, or was lost. The task was the last user of another
 * input, which must stay. */
static void what_could_not_start_leaves_its_inputs(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    for (uint32_t i = 0; i < 2; i++) {
        rig_value(r, RIG_JOB, 21, 2);
        rig_task(r, RIG_JOB, 2, 1 + i, OP_BLOCK, INPUTS(1001, 21));
        rig_deliver(r);
        rig_turn(r);
        fetched(r, i ? MR_ENOENT : MR_ELIMIT, "not to be had");
        assert_int_equal(rig_find(r, 2)->outcome, i ? MR_OUTCOME_LOST_INPUT : MR_OUTCOME_NO_ROOM);
        assert_true(mr_worker_keeps(r->w, RIG_JOB, 1));
    }
}

/* Task 3, the only user of the value of task 2, runs in the same strand as task 2. So task 2 ends
 * as USED_UP, not as OK. Task 2 is the last user of the value of task 1. In this case, too, the
 * worker must release the value of task 1. */
static void what_is_used_up_lets_go_of_its_inputs(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 1, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_run_all(r);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1001));
    rig_uses(r, 1);
    rig_task(r, RIG_JOB, 3, 1, OP_INC, INPUTS(2));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 2)->outcome, MR_OUTCOME_USED_UP);
    assert_false(mr_worker_keeps(r->w, RIG_JOB, 1));
}

/* A strand is a list of tasks that one executor runs. A drain makes the core ask executors to cut
 * strands: to give back the tasks that have not begun. Here, a cancelled task stops before its
 * executor has answered. */
static void what_has_stopped_is_not_killed(void **state)
{
    struct rig *r = *state;
    (void)run_one(r, 1, 1);
    (void)run_one(r, 2, 1); /* this task keeps the worker from ending */
    cancel(r, 1, 1);
    assert_int_equal(r->stops, 1);
    r->hold_cuts = true;
    rig_event(r, MR_WORKER_DRAIN);
    rig_turn(r);
    assert_int_equal(end_as(r, 1, MR_STRAND_STOPPED, MR_OK)->outcome, MR_OUTCOME_CANCELLED);
    r->now += 2 * MR_WORKER_GRACE;
    rig_turn(r);
    assert_false(r->lethal);
}

/* The first fetch of value 21 does not find its object. The second fetch finds no room, so the
 * outcome must be NO_ROOM and not LOST_INPUT. */
static void what_was_lost_and_is_back_may_find_no_room(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2; i++) {
        rig_value(r, RIG_JOB, 21, 2);
        rig_task(r, RIG_JOB, 1, 1 + i, OP_SLOW, INPUTS(21));
        /* This task takes value 21 by reference, and also waits for value 90, which never comes. */
        rig_task(r, RIG_JOB, 2 + i, 1, OP_REF, INPUTS(21, 90));
        rig_deliver(r);
        rig_turn(r);
        fetched(r, i ? MR_ELIMIT : MR_ENOENT, "so");
        assert_int_equal(rig_find(r, 1)->attempt, 1 + i);
        assert_int_equal(rig_find(r, 1)->outcome, i ? MR_OUTCOME_NO_ROOM : MR_OUTCOME_LOST_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_end_has_its_outcome_its_error_and_its_times),
        TEST(a_cancelled_task_that_found_no_room_is_cancelled),
        TEST(a_task_is_stopped_once),
        TEST(a_timeout_is_kept_beside_other_tasks),
        TEST(what_ended_while_a_cut_is_under_way_is_not_stopped),
        TEST(what_runs_into_its_timeout_and_is_cancelled_then_timed_out),
        TEST(a_timeout_that_is_ignored_costs_the_process),
        TEST(the_end_of_others_does_not_pardon_what_is_stopped),
        TEST(what_was_skipped_did_not_start),
        TEST(an_attempt_that_waits_for_another_is_cancelled_by_its_number),
        TEST(what_was_skipped_for_want_of_a_lost_input_is_lost),
        TEST(what_finds_no_room_for_its_input_is_told_so),
        TEST(what_cannot_be_fetched_is_named_for_each_that_needs_it),
        TEST(what_lies_elsewhere_now_is_fetched_from_there),
        TEST(a_value_that_came_inline_is_not_fetched),
        TEST(an_object_that_is_asked_for_again_is_taken_from_who_has_not_begun),
        TEST(what_could_not_start_leaves_its_inputs),
        TEST(what_is_used_up_lets_go_of_its_inputs),
        TEST(what_has_stopped_is_not_killed),
        TEST(what_was_lost_and_is_back_may_find_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
