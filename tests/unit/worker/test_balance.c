/* The worker's core: which tasks an idle slot takes from the strands of other slots, and when the
 * core looks for such tasks. A strand is a list of tasks, its items, that one executor runs back to
 * back. To look means to cut a strand: the core asks the strand's executor for the last items. The
 * executor gives back those of them that have not begun. */
#include "tests/unit/worker/test.h"

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

/* Starts a strand of `n` tasks of 40 µs in each of three slots. The last slot's strand ends, so
 * that slot is idle. */
static void one_idles(struct rig *r, uint32_t n)
{
    rig_measure(r, OP_INC, 40 * MR_US);
    r->now += MR_SECOND;
    ready(r, 0, 3 * n);
    assert_int_equal(r->strands_count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(r->strands[i]->count, n);
    r->hold_cuts = true;
    rig_run(r, 2, MR_STRAND_DONE);
}

static void an_idle_slot_takes_half_of_what_the_fullest_slot_has_not_begun(void **state)
{
    struct rig *r = *state;
    one_idles(r, 9);
    report_one(r, r->strands[0]);
    rig_turn(r);
    assert_int_equal(r->takes, 1); /* 8 items of the second strand have not begun, 7 of the first */
    assert_int_equal(r->last[MR_WORKER_TAKE].item.strand, r->strands[1]->id);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 5);
    cut(r, r->strands[1], 5);
    rig_turn(r);
    assert_int_equal(r->strands_count, 3);
    assert_int_equal(r->strands[2]->count, 4);
    assert_int_equal(r->strands[2]->items[0].index, 14);
}

/* After a look for work, the core looks again 50 µs later, and sets its deadline to the time of the
 * next look. */
static void an_idle_slot_does_not_ask_all_the_time(void **state)
{
    struct rig *r = *state;
    one_idles(r, 10);
    rig_turn(r);
    assert_int_equal(r->takes, 1);
    cut(r, r->strands[0], 10); /* the executor answers that all items have begun */
    mr_time first = r->now;
    r->now += 10 * MR_US;
    /* The effect LOOK, which asks for a report, comes 50 µs after this report at the earliest. So
     * the deadline below is not the time of a LOOK. */
    report_one(r, r->strands[1]);
    rig_turn(r);
    assert_int_equal(r->takes, 1);
    assert_int_equal(mr_worker_deadline(r->w), first + 50 * MR_US);
    r->now = first + 50 * MR_US - 1;
    rig_turn(r);
    assert_int_equal(r->takes, 1);
    r->now = first + 50 * MR_US;
    rig_turn(r);
    assert_int_equal(r->takes, 2);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.strand, r->strands[1]->id);
    cut(r, r->strands[1], 10);
    r->now += 50 * MR_US;
    rig_turn(r);
    assert_int_equal(r->takes, 2); /* no strand has items left that could be taken */
}

/* A strand of less than 20 µs of work will probably end before a cut could help. */
static void what_is_soon_over_is_left_alone_for_a_while(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_US);
    r->now += MR_SECOND;
    r->hold_cuts = true;
    ready(r, 0, 19);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->takes, 0);
    assert_int_equal(mr_worker_deadline(r->w), r->now + 50 * MR_US);
    r->now += 50 * MR_US;
    rig_turn(r);
    assert_int_equal(r->takes, 1);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 10);
}

static void an_idle_slot_takes_nothing_from_a_worker_that_drains(void **state)
{
    struct rig *r = *state;
    one_idles(r, 10);
    r->takes = 0;
    r->m.down.drain = true;
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->takes, 2); /* the drain takes back the rest of both strands */
    for (uint32_t i = 0; i < 2; i++)
        cut(r, r->strands[i], 4);
    r->now += MR_MS;
    rig_turn(r);
    assert_int_equal(r->takes, 2);
    assert_int_equal(r->looks, 0);
}

/* The core looks at a running strand 50 µs after its start, and then whenever the time since the
 * start has doubled. */
static void looks_at_a_running_strand_come_at_doubling_times(void **state)
{
    static const uint32_t looks_us[] = {50, 100, 200, 400, 800};
    struct rig *r = *state;
    rig_chain(r, 2, OP_INC);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(0));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->strands[0]->count, 3);
    mr_time begin = r->now;
    for (uint32_t i = 0; i < MR_ARRAY_LEN(looks_us); i++) {
        r->now = begin + looks_us[i] * MR_US - 1;
        rig_turn(r);
        assert_int_equal(r->looks, i);
        assert_int_equal(mr_worker_deadline(r->w), r->now + 1);
        r->now++;
        rig_turn(r);
        assert_int_equal(r->looks, i + 1);
        assert_int_equal(r->last[MR_WORKER_LOOK].item.strand, r->strands[0]->id);
    }
    report_one(r, r->strands[0]); /* after a report the core looks 50 µs later again */
    rig_turn(r);
    r->now += 50 * MR_US;
    rig_turn(r);
    assert_int_equal(r->looks, 6);
    report_one(r, r->strands[0]); /* only the last item is left, and it runs */
    r->now += MR_MS;
    rig_turn(r);
    assert_int_equal(r->looks, 6);
}

static void twenty_microseconds_of_work_are_taken_at_once(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_US);
    r->now += MR_SECOND;
    r->hold_cuts = true;
    ready(r, 0, 20);
    assert_int_equal(r->strands_count, 1);
    assert_int_equal(r->takes, 1);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 10);
}

static void any_slot_is_looked_at(void **state)
{
    struct rig *r = *state;
    rig_task(r, RIG_JOB, 50, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    rig_chain(r, 2, OP_INC);
    rig_task(r, RIG_JOB, 2, 1, OP_INC, INPUTS(0));
    rig_deliver(r);
    rig_turn(r);
    assert_int_equal(r->strands[1]->slot, 1);
    rig_run(r, 0, MR_STRAND_DONE);
    r->now += 50 * MR_US;
    rig_turn(r);
    assert_int_equal(r->looks, 1);
    assert_int_equal(r->last[MR_WORKER_LOOK].item.strand, r->strands[0]->id);
}

/* The first strand of a slot runs, and the second strand waits behind it. */
static void an_idle_slot_takes_from_a_strand_that_has_not_begun(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, 40 * MR_US);
    r->now += MR_SECOND;
    ready(r, 0, 1);
    rig_task(r, RIG_JOB, 50, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    ready(r, 10, 3);
    assert_int_equal(r->strands_count, 3);
    assert_int_equal(r->strands[2]->slot, r->strands[0]->slot);
    assert_int_equal(r->strands[2]->count, 3);
    r->hold_cuts = true;
    r->now += MR_MS;
    rig_run(r, 1, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->takes, 1);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.strand, r->strands[1]->id);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.at, 1);
}

/* The executors answer the first cuts: all items have begun. Later strands use the same memory, and
 * the core must still be able to cut these strands. */
static void a_strand_that_is_used_again_can_be_cut_again(void **state)
{
    struct rig *r = *state;
    one_idles(r, 10);
    for (uint32_t i = 0; i < 2; i++) {
        rig_turn(r);
        assert_int_equal(r->takes, i + 1);
        cut(r, r->strands[i], 10);
        r->now += 50 * MR_US;
    }
    rig_run_all(r);
    for (uint32_t i = 0; i < 30; i++)
        rig_ref(&r->m.down.release, &r->m.release, RIG_JOB, i, 1);
    rig_deliver(r);
    r->takes = 0;
    one_idles(r, 10);
    rig_turn(r);
    assert_int_equal(r->takes, 1);
}

static void a_strand_whose_last_item_runs_is_left_alone(void **state)
{
    struct rig *r = *state;
    r->now += MR_SECOND;
    ready(r, 0, 2);
    assert_int_equal(r->strands_count, 1);
    report_one(r, r->strands[0]);
    r->now += MR_MS;
    rig_turn(r);
    assert_int_equal(r->looks, 0);
    assert_int_equal(r->takes, 0);
}

/* The strand waits behind a running task. It has too little work to be taken at once, so the core
 * looks again later. */
static void a_strand_that_waits_is_looked_at_again(void **state)
{
    struct rig *r = *state;
    rig_measure(r, OP_INC, MR_US);
    r->now += MR_SECOND;
    ready(r, 0, 1);
    rig_task(r, RIG_JOB, 50, 1, OP_BLOCK, NULL);
    rig_deliver(r);
    rig_turn(r);
    r->now += MR_MS;
    ready(r, 10, 3);
    assert_int_equal(r->strands_count, 3);
    r->hold_cuts = true;
    rig_run(r, 1, MR_STRAND_DONE);
    rig_turn(r);
    assert_int_equal(r->takes, 0);
    assert_int_equal(mr_worker_deadline(r->w), r->now + 50 * MR_US);
    r->now += 50 * MR_US;
    rig_turn(r);
    assert_int_equal(r->takes, 1);
    assert_int_equal(r->last[MR_WORKER_TAKE].item.strand, r->strands[1]->id);
}

#define THREE(name) cmocka_unit_test_setup_teardown(name, setup_three, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        THREE(an_idle_slot_takes_half_of_what_the_fullest_slot_has_not_begun),
        THREE(an_idle_slot_does_not_ask_all_the_time),
        TEST(what_is_soon_over_is_left_alone_for_a_while),
        THREE(an_idle_slot_takes_nothing_from_a_worker_that_drains),
        TEST(looks_at_a_running_strand_come_at_doubling_times),
        TEST(twenty_microseconds_of_work_are_taken_at_once),
        TEST(any_slot_is_looked_at),
        TEST(an_idle_slot_takes_from_a_strand_that_has_not_begun),
        THREE(a_strand_that_is_used_again_can_be_cut_again),
        TEST(a_strand_whose_last_item_runs_is_left_alone),
        TEST(a_strand_that_waits_is_looked_at_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
