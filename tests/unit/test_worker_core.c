/* The worker's core, one promise at a time. */
#include "worker_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define INPUTS(...) ((const int[]){__VA_ARGS__, -1})

static int setup(void **state)
{
    *state = rig_new(2);
    return 0;
}

static int teardown(void **state)
{
    rig_free((struct rig **)state);
    return 0;
}

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
    assert_int_equal(r->done[0].outcome, MR_WS_OK);
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
    assert_int_equal(r->takes, 0); /* nothing of it could run elsewhere */
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
    rig_deliver(r); /* a late release is harmless */
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
    assert_int_equal(rig_find(r, 2)->outcome, MR_WS_ERROR);
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
    rig_step(r, &ev); /* a duplicate is harmless */
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
    assert_int_equal(r->fetches, 3); /* 1 MiB each, 3 MiB allowed */
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
    assert_int_equal(r->done[0].outcome, MR_WS_LOST_INPUT);
    rig_value(r, RIG_JOB, 1, 1); /* the scheduler sends both again */
    rig_task(r, RIG_JOB, 2, 2, OP_INC, INPUTS(1, 1));
    rig_deliver(r);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 2)->outcome, MR_WS_OK);
    assert_int_equal(rig_find(r, 3)->outcome, MR_WS_OK); /* it had waited all along */
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
    assert_int_equal(rig_find(r, 2)->outcome, MR_WS_LOST_INPUT);
    assert_int_equal(rig_find(r, 3)->outcome, MR_WS_LOST_INPUT);
}

static void a_waiting_task_is_cancelled_at_once(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(1));
    rig_deliver(r);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 2, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 1);
    assert_int_equal(r->done[0].outcome, MR_WS_CANCELLED);
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
    assert_int_equal(r->unknown, 0); /* would say that the value, when asked for, is gone */
}

static void a_running_task_gets_its_cancel_flag_and_queued_ones_never_start(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 10; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands[0]->count, 10); /* too little work for two slots */
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 0, 1);
    rig_ref(&r->m.down.cancel, &r->m.cancel, RIG_JOB, 5, 1);
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->stops, 1);
    assert_int_equal(rig_find(r, 5)->outcome, MR_WS_CANCELLED);
    assert_null(rig_find(r, 0));
    struct mr_strand *s = r->strands[0];
    rig_result(r, &s->items[0], MR_STRAND_STOPPED);
    for (uint32_t i = 1; i < s->count; i++)
        rig_result(r, &s->items[i], MR_STRAND_DONE);
    rig_report(r, s, s->count);
    rig_run_all(r);
    assert_int_equal(rig_find(r, 0)->outcome, MR_WS_CANCELLED);
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
    assert_int_equal(r->done[0].outcome, MR_WS_OK);
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
    assert_int_equal(r->done[0].outcome, MR_WS_CANCELLED);
    assert_int_equal(r->done[0].attempt, 1);
    assert_int_equal(r->done[1].outcome, MR_WS_OK);
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
    assert_int_equal(rig_find(r, 1)->outcome, MR_WS_CANCELLED);
    assert_int_equal(rig_find(r, 2)->outcome, MR_WS_RETURNED); /* ran, without blame */
    assert_int_equal(rig_find(r, 3)->outcome, MR_WS_RETURNED);
    assert_true(r->leaving);
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
    assert_int_equal(r->done[0].outcome, MR_WS_TIMEOUT);
    assert_int_equal(r->done[0].code, MR_ETIMEOUT);
}

static void a_steal_takes_what_has_not_started(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 10; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, NULL);
    rig_task(r, RIG_JOB, 20, 1, OP_INC, INPUTS(19));
    rig_deliver(r);
    rig_turn(r);
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 0, 1);  /* runs */
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 7, 1);  /* in the strand */
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 20, 1); /* waits */
    rig_ref(&r->m.down.steal, &r->m.steal, RIG_JOB, 33, 1); /* never heard of */
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
    struct mr_worker_event report = {.kind = MR_WORKER_REPORT, .report = {s->id, 1}};
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
    assert_int_equal(rig_find(r, 1)->outcome, MR_WS_OK);
    assert_int_equal(r->done_count, 3);
}

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
    assert_int_equal(r->strands_count, 2); /* one with the gpu, and the plain one */
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
    assert_int_equal(r->done[0].outcome, MR_WS_RETURNED);
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
    assert_int_equal(r->strands_count, 1); /* 3 waits for its turn behind 2 */
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
    assert_int_equal(r->strands_count, 2); /* 3 waits for 2 */
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
    assert_int_equal(r->done[0].outcome, MR_WS_BAD_ARGUMENT);
    assert_int_equal(r->done[0].code, MR_EUNIMPL);
    assert_int_equal(r->done[1].outcome, MR_WS_BAD_ARGUMENT);
}

static void what_is_over_the_limit_goes_back(void **state)
{
    struct rig *r = *state;
    for (uint32_t i = 0; i < 2100; i++)
        rig_task(r, RIG_JOB, i, 1, OP_INC, INPUTS(999));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->done_count, 52);
    assert_int_equal(r->done[0].outcome, MR_WS_RETURNED);
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
    for (uint32_t i = 0; i < 2; i++) { /* five were done already, and not yet reported */
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
        TEST(an_op_by_reference_needs_no_fetch),
        TEST(fetches_stay_below_their_budget),
        TEST(an_input_that_cannot_be_had_is_reported_once),
        TEST(an_object_gone_under_a_running_task_is_a_lost_input),
        TEST(a_waiting_task_is_cancelled_at_once),
        TEST(a_cancel_of_something_unknown_is_answered_unknown),
        TEST(a_steal_of_what_was_made_meanwhile_is_answered_by_its_completion),
        TEST(a_running_task_gets_its_cancel_flag_and_queued_ones_never_start),
        TEST(a_cancelled_task_that_finishes_first_is_done),
        TEST(a_new_attempt_waits_for_the_end_of_the_cancelled_one),
        TEST(a_task_that_ignores_its_flag_costs_the_process),
        TEST(a_timeout_stops_the_attempt),
        TEST(a_steal_takes_what_has_not_started),
        TEST(a_steal_that_crosses_the_report_is_answered_started),
        TEST(an_item_whose_maker_failed_waits_again),
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
