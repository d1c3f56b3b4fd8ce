/* host/pool/work_sharing: an owner runs the blocks of a piece of work, and idle helpers steal
 * blocks from it. */
#include "host/pool/work_sharing.h"

#include "base/defs.h"
#include "base/err.h"
#include "host/clock.h"
#include "host/inbox.h"
#include "host/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define BLOCKS 400u
#define HELPERS 3u

struct work { /* what the run callback has counted for one piece of work */
    uint32_t done[BLOCKS];
    /* For each lane, how many blocks ran in it. A lane has one thread at a time, which alone writes
     * this count; lane 0 is the owner's. */
    uint32_t in_lane[MR_LANES_MAX];
    _Atomic uint32_t helped;
    _Atomic uint32_t begun;
    uint32_t wait_for_help; /* in this block the owner waits until a helper has run a block */
    uint32_t bad_from;      /* first block that fails; a block's error is its number, negated */
    uint32_t stop_after;
    _Atomic uint32_t *stays; /* `stays` of the helper: the first block that the helper runs clears
                              * it */
};

static int one(void *ctx, uint32_t block, uint32_t lane)
{
    struct work *w = ctx;
    atomic_fetch_add(&w->begun, 1);
    w->done[block]++;
    w->in_lane[lane]++;
    if (lane && w->stays) atomic_store(w->stays, 0);
    if (lane) atomic_fetch_add(&w->helped, 1);
    while (!lane && block == w->wait_for_help && !atomic_load(&w->helped))
        mr_clock_sleep(100 * MR_US);
    return block >= w->bad_from ? -(int)block : MR_OK;
}

static bool is_stopped(void *ctx)
{
    struct work *w = ctx;
    return atomic_load(&w->begun) >= w->stop_after;
}

static struct work work_new(void)
{
    return (struct work){.wait_for_help = BLOCKS, .bad_from = BLOCKS, .stop_after = UINT32_MAX};
}

static struct mr_blocks blocks_of(struct work *w, uint32_t count, uint32_t lanes)
{
    return (struct mr_blocks){
        .count = count, .lanes = lanes, .run = one, .is_stopped = is_stopped, .ctx = w};
}

struct helper {
    struct mr_work_sharing *group;
    struct mr_inbox *inbox;
    struct mr_thread *thread;
    uint32_t slot;
    _Atomic uint32_t stays; /* 1: the helper goes on stealing blocks; 0: it has work of its own */
};

static bool is_wanted(void *ctx)
{
    const struct helper *h = ctx;
    return !atomic_load(&h->stays) || !mr_inbox_is_empty(h->inbox) || mr_inbox_is_closed(h->inbox);
}

static void help(void *ctx)
{
    struct helper *h = ctx;
    while (!mr_inbox_is_closed(h->inbox)) {
        uint32_t epoch = mr_work_sharing_epoch(h->group), item;
        if (mr_work_sharing_steal(h->group, h->slot, is_wanted, h)) continue;
        mr_work_sharing_idle(h->group, h->slot, true);
        if (mr_work_sharing_epoch(h->group) == epoch)
            (void)mr_inbox_wait(h->inbox, MR_NEVER, &item, 1);
        mr_work_sharing_idle(h->group, h->slot, false);
    }
}

static struct mr_work_sharing *group_start(struct helper *helpers, uint32_t count)
{
    struct mr_work_sharing *g = mr_work_sharing_new(1 + HELPERS);
    for (uint32_t i = 0; i < count; i++) {
        helpers[i] = (struct helper){.group = g, .slot = 1 + i, .stays = 1};
        helpers[i].inbox = mr_inbox_new(4, sizeof(uint32_t));
        mr_work_sharing_enter(g, 1 + i, helpers[i].inbox);
        helpers[i].thread = mr_thread_start("helper", help, &helpers[i]);
    }
    return g;
}

static void group_end(struct mr_work_sharing *g, struct helper *helpers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mr_inbox_close(helpers[i].inbox);
        mr_thread_join(&helpers[i].thread);
        mr_work_sharing_enter(g, 1 + i, NULL);
        mr_inbox_free(&helpers[i].inbox);
    }
    mr_work_sharing_free(&g);
    assert_null(g);
}

static void every_block_is_done_once_whoever_helps(void **state)
{
    (void)state;
    struct helper helpers[HELPERS];
    struct mr_work_sharing *g = group_start(helpers, HELPERS);
    for (uint32_t round = 0; round < 600; round++) {
        struct work w = work_new();
        uint32_t count = round % BLOCKS, lanes = 1 + round % (HELPERS + 1), all = 0;
        struct mr_blocks b = blocks_of(&w, count, lanes);
        struct mr_blocks_end end = mr_work_sharing_run(g, 0, &b);
        assert_int_equal(end.err, MR_OK);
        assert_false(end.stopped);
        for (uint32_t i = 0; i < BLOCKS; i++)
            assert_int_equal(w.done[i], i < count);
        for (uint32_t i = 0; i < MR_LANES_MAX; i++) {
            assert_true(i < lanes || !w.in_lane[i]);
            all += w.in_lane[i];
        }
        assert_int_equal(all, count);
    }
    group_end(g, helpers, HELPERS);
}

static void who_sleeps_is_woken_to_help(void **state)
{
    (void)state;
    struct helper helper;
    struct mr_work_sharing *g = group_start(&helper, 1);
    for (uint32_t round = 0; round < 20; round++) {
        struct work w = work_new();
        /* The owner waits for help in its first block, while blocks are left for the helper. In the
         * last block the owner might wait for ever. */
        w.wait_for_help = 0;
        struct mr_blocks b = blocks_of(&w, BLOCKS, 2);
        struct mr_blocks_end end = mr_work_sharing_run(g, 0, &b);
        assert_int_equal(end.err, MR_OK);
        assert_true(w.in_lane[1] > 0);
        assert_true(end.stolen_cpu > 0);
        mr_clock_sleep(round % 4 * MR_MS / 2);
    }
    group_end(g, &helper, 1);
}

static void a_helper_leaves_when_it_is_wanted(void **state)
{
    (void)state;
    struct helper helper;
    struct mr_work_sharing *g = group_start(&helper, 1);
    struct work w = work_new();
    w.wait_for_help = 0;
    w.stays = &helper.stays;
    struct mr_blocks b = blocks_of(&w, BLOCKS, 2);
    (void)mr_work_sharing_run(g, 0, &b);
    assert_int_equal(w.in_lane[1], 1);
    assert_int_equal(w.in_lane[0], BLOCKS - 1);
    group_end(g, &helper, 1);
}

static void the_first_error_by_number_ends_the_work(void **state)
{
    (void)state;
    struct helper helpers[HELPERS];
    struct mr_work_sharing *g = group_start(helpers, HELPERS);
    for (uint32_t round = 0; round < 200; round++) {
        struct work w = work_new();
        w.bad_from = 1 + round;
        struct mr_blocks b = blocks_of(&w, BLOCKS, 1 + HELPERS);
        struct mr_blocks_end end = mr_work_sharing_run(g, 0, &b);
        assert_int_equal(end.err, -(int)w.bad_from);
        assert_int_equal(end.failed, w.bad_from);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            bool must = i <= w.bad_from, may = i <= w.bad_from + HELPERS;
            assert_in_range(w.done[i], must, may);
        }
    }
    group_end(g, helpers, HELPERS);
}

static void what_is_stopped_begins_no_more_blocks(void **state)
{
    (void)state;
    struct helper helpers[HELPERS];
    struct mr_work_sharing *g = group_start(helpers, HELPERS);
    for (uint32_t lanes = 1; lanes <= 1 + HELPERS; lanes++) {
        struct work w = work_new();
        w.stop_after = 10;
        struct mr_blocks b = blocks_of(&w, BLOCKS, lanes);
        struct mr_blocks_end end = mr_work_sharing_run(g, 0, &b);
        assert_true(end.stopped);
        assert_int_equal(end.err, MR_OK);
        assert_in_range(w.begun, 10, 10 + lanes);
    }
    group_end(g, helpers, HELPERS);
}

static void alone_blocks_are_done_in_order(void **state)
{
    (void)state;
    struct work w = work_new();
    w.bad_from = 7;
    struct mr_blocks b = blocks_of(&w, BLOCKS, 1);
    struct mr_blocks_end end = mr_blocks_alone(&b);
    assert_int_equal(end.failed, 7);
    assert_int_equal(w.begun, 8);
    assert_int_equal(end.stolen_cpu, 0);
    assert_int_equal(end.waited_cpu, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_is_done_once_whoever_helps),
        cmocka_unit_test(who_sleeps_is_woken_to_help),
        cmocka_unit_test(a_helper_leaves_when_it_is_wanted),
        cmocka_unit_test(the_first_error_by_number_ends_the_work),
        cmocka_unit_test(what_is_stopped_begins_no_more_blocks),
        cmocka_unit_test(alone_blocks_are_done_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
