/* Executors on real threads. A strand is a list of items (tasks) that one executor runs in order. A
 * cut takes the items that have not begun off the end of a strand. The executor reports exactly the
 * items that the cut has left. Runs under TSan as well. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/pack.h"
#include "host/clock.h"
#include "host/pool/work_sharing.h"
#include "host/inbox.h"
#include "host/thread.h"
#include "services/worker/exec/executor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct rig {
    struct mr_registry *registry;
    struct mr_roots roots;
    struct mr_inbox *inbox;
    struct mr_executor_env env;
    struct mr_executor *x;
    struct mr_strand *strand;
    struct mr_strand_input inputs[MR_STRAND_ITEMS_MAX];
    const struct mr_op_desc *ops[8];
};

enum { INC, SLEEP, DIV, FULL, SUM, SHARE, MOODY, OPS };

static const unsigned char inc_one[] = {0x91, 0x01};                     /* arguments [1] */
static const unsigned char inc_input[] = {0x91, 0xd6, 0x01, 0, 0, 0, 0}; /* arguments [input 0] */
static const unsigned char div_zero[] = {0x92, 0x01, 0x00};              /* arguments [1, 0] */
static const unsigned char sleep_short[] = {
    0x92, 0xcb, 0x3f, 0x60, 0x62, 0x4d, 0xd2, 0xf1, 0xa9, 0xfc, 0x01}; /* arguments [0.002, 1] */
static const unsigned char sleep_long[] = {0x92, 0x3c, 0x01};          /* arguments [60, 1] */

/* Arguments [[100, 1000], 1]. */
static const unsigned char full[] = {0x92, 0x92, 0x64, 0xcd, 0x03, 0xe8, 0x01};

static void on_report(void *ctx, const struct mr_run_report *r)
{
    (void)mr_inbox_push_wait(((struct rig *)ctx)->inbox, r, MR_NEVER);
}

/* An operator that runs in blocks. If `waits` is set, its first block waits until a helper has run
 * a block or the task is cancelled. */
struct share {
    _Atomic uint32_t begun, helped;
    uint32_t lanes, blocks;
    bool waits;
    struct mr_op_call *call;
};

static struct share share;

static int share_block(void *ctx, uint32_t block, uint32_t lane)
{
    struct share *s = ctx;
    atomic_fetch_add(&s->begun, 1);
    if (lane) {
        mr_time until = mr_time_after(mr_clock_now(), 200 * MR_US);
        while (mr_clock_now() < until)
            ;
        atomic_fetch_add(&s->helped, 1);
    }
    while (!block && s->waits && !s->helped && !s->call->does->is_cancelled(s->call))
        mr_clock_sleep(100 * MR_US);
    return MR_OK;
}

static int share_run(struct mr_op_call *call)
{
    share.call = call;
    share.lanes = call->does->lanes(call);
    int err = call->does->parallel(call, share.blocks, share_block, &share);
    return err ? err : call->does->return_int(call, share.helped);
}

static const struct mr_op_desc share_op = {
    .abi = MR_OP_ABI, .name = "test.share", .summary = "", .result = "", .run = share_run};

/* An operator that sleeps for `waits` and then computes for `computes`. */
static struct {
    mr_duration waits, computes;
} moody;

static int moody_run(struct mr_op_call *call)
{
    mr_duration until = mr_clock_thread_cpu() + moody.computes;
    if (moody.waits) mr_clock_sleep(moody.waits);
    while (moody.computes && mr_clock_thread_cpu() < until)
        ;
    return call->does->return_int(call, 1);
}

static const struct mr_op_desc moody_op = {
    .abi = MR_OP_ABI, .name = "test.moody", .summary = "", .result = "", .run = moody_run};

static int setup(void **state)
{
    struct rig *r = mr_alloc(sizeof *r);
    r->registry = mr_registry_new();
    mr_roots_init(&r->roots);
    r->ops[INC] = mr_registry_find(r->registry, MR_STR("inc"));
    r->ops[SLEEP] = mr_registry_find(r->registry, MR_STR("sleep"));
    r->ops[DIV] = mr_registry_find(r->registry, MR_STR("div"));
    r->ops[FULL] = mr_registry_find(r->registry, MR_STR("array.full"));
    r->ops[SUM] = mr_registry_find(r->registry, MR_STR("array.sum"));
    r->ops[SHARE] = &share_op;
    r->ops[MOODY] = &moody_op;
    share = (struct share){.blocks = 20};
    r->inbox = mr_inbox_new(1024, sizeof(struct mr_run_report));
    r->env = (struct mr_executor_env){.ops = r->ops,
        .ops_count = OPS,
        .roots = &r->roots,
        .scratch_bytes_max = 1 << 20,
        .store_address = "",
        .report = on_report,
        .ctx = r};
    r->x = mr_executor_start(&r->env, 0);
    r->strand = mr_alloc(sizeof *r->strand);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct rig *r = *state;
    mr_executor_stop(&r->x);
    mr_inbox_free(&r->inbox);
    mr_registry_free(&r->registry);
    mr_roots_fini(&r->roots);
    mr_release(r->strand);
    mr_release(r);
    return 0;
}

static void item(struct rig *r, uint32_t op, const void *args, size_t bytes)
{
    struct mr_strand *s = r->strand;
    s->items[s->count++] = (struct mr_strand_item){
        .job = {1}, .index = s->count, .attempt = 1, .op = op, .args = mr_str_of(args, bytes)};
}

static void item_after(struct rig *r, uint32_t maker)
{
    struct mr_strand *s = r->strand;
    struct mr_strand_input *in = &r->inputs[s->count];
    *in = (struct mr_strand_input){.kind = MR_STRAND_ITEM, .item = maker};
    item(r, INC, inc_input, sizeof inc_input);
    s->items[s->count - 1].inputs = in;
    s->items[s->count - 1].inputs_count = 1;
}

/* Takes reports until the last one of the strand. Returns the number of reported items. */
static uint32_t finish(struct rig *r, struct mr_run *run)
{
    uint32_t done = 0;
    for (;;) {
        struct mr_run_report report;
        if (!mr_inbox_wait(r->inbox, MR_NEVER, &report, 1)) continue;
        assert_ptr_equal(report.run, run);
        assert_true(report.done >= done);
        done = report.done;
        if (report.last) return done;
    }
}

static int64_t int_of(const struct mr_strand_item *i)
{
    struct mr_pack_reader p = mr_pack_read(i->result.pack);
    struct mr_pack_item got;
    assert_int_equal(mr_pack_next(&p, &got), MR_OK);
    return got.i;
}

static void items_of_a_strand_use_what_earlier_ones_made(void **state)
{
    struct rig *r = *state;
    item(r, INC, inc_one, sizeof inc_one);
    for (uint32_t i = 1; i < 100; i++)
        item_after(r, i - 1);
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    assert_int_equal(finish(r, run), 100);
    assert_int_equal(int_of(&r->strand->items[99]), 101);
    assert_true(r->strand->items[99].result.started_ns >= r->strand->items[0].result.started_ns);
    mr_run_free(&run);
}

/* The test has no store, so arrays must stay in the executor's own memory. */
static void an_array_that_a_strand_uses_up_never_reaches_the_store(void **state)
{
    struct rig *r = *state;
    r->strand->measured = true;
    item(r, FULL, full, sizeof full);
    for (uint32_t i = 1; i < 20; i++)
        item_after(r, i - 1);
    r->strand->items[19].op = SUM;
    for (uint32_t i = 0; i < 19; i++)
        r->strand->items[i].uses = 1;
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    assert_int_equal(finish(r, run), 20);
    for (uint32_t i = 0; i < 19; i++) {
        assert_int_equal(r->strand->items[i].result.end, MR_STRAND_DONE);
        assert_true(r->strand->items[i].result.used);
    }
    assert_int_equal(int_of(&r->strand->items[19]), 1900000);
    mr_run_free(&run);
}

/* Gives the executor an array with one use, which is announced to be in the strand. But no item of
 * the strand uses the array. */
static struct mr_run *one_use_that_does_not_come(struct rig *r)
{
    r->strand->measured = true;
    item(r, FULL, full, sizeof full);
    r->strand->items[0].uses = 1;
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    return run;
}

static void an_array_whose_use_does_not_come_goes_to_the_store(void **state)
{
    struct rig *r = *state;
    struct mr_run *run = one_use_that_does_not_come(r);
    assert_int_equal(finish(r, run), 1);
    /* The array has to go to the store, and the test has none. */
    assert_int_equal(r->strand->items[0].result.end, MR_STRAND_FAILED);
    assert_int_equal(r->strand->items[0].result.code, MR_ELIMIT);
    assert_false(r->strand->items[0].result.used);
    mr_run_free(&run);
}

static void a_value_that_fails_on_its_way_to_the_store_is_not_told_quietly(void **state)
{
    struct rig *r = *state;
    struct mr_run *run = one_use_that_does_not_come(r);
    struct mr_run_report report;
    while (!mr_inbox_wait(r->inbox, MR_NEVER, &report, 1))
        ;
    assert_true(report.last);
    assert_int_equal(r->strand->items[0].result.end, MR_STRAND_FAILED);
    assert_false(report.quiet);
    mr_run_free(&run);
}

/* A report wakes the network thread only if it says something new. Items whose values stay in the
 * strand are nothing new. */
static void a_report_says_something_new(void **state)
{
    struct rig *r = *state;
    r->strand->measured = true;
    item(r, SLEEP, sleep_short, sizeof sleep_short);
    item(r, FULL, full, sizeof full);
    item(r, SLEEP, sleep_short, sizeof sleep_short);
    item(r, SLEEP, sleep_short, sizeof sleep_short);
    item_after(r, 1);
    r->strand->items[4].op = SUM;
    r->strand->items[1].uses = 1;
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    uint32_t fresh = 0;
    for (struct mr_run_report report = {0}; !report.last;) {
        if (!mr_inbox_wait(r->inbox, MR_NEVER, &report, 1)) continue;
        assert_true(report.fresh);
        fresh += report.fresh;
    }
    assert_int_equal(fresh, 5);
    assert_int_equal(r->strand->items[4].result.end, MR_STRAND_DONE);
    mr_run_free(&run);
}

static void what_depends_on_a_failed_item_is_skipped(void **state)
{
    struct rig *r = *state;
    item(r, DIV, div_zero, sizeof div_zero);
    item_after(r, 0);
    item_after(r, 1);
    item(r, INC, inc_one, sizeof inc_one);
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    assert_int_equal(finish(r, run), 4);
    assert_int_equal(r->strand->items[0].result.end, MR_STRAND_FAILED);
    assert_true(r->strand->items[0].result.message.n > 0);
    assert_int_equal(r->strand->items[1].result.end, MR_STRAND_SKIPPED);
    assert_int_equal(r->strand->items[2].result.end, MR_STRAND_SKIPPED);
    assert_int_equal(r->strand->items[2].result.started_ns, 0);
    assert_int_equal(r->strand->items[3].result.end, MR_STRAND_DONE);
    mr_run_free(&run);
}

static void a_stop_ends_an_op_that_looks_at_its_flag(void **state)
{
    struct rig *r = *state;
    item(r, SLEEP, sleep_long, sizeof sleep_long);
    item(r, INC, inc_one, sizeof inc_one);
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    mr_run_stop(run, 0);
    assert_int_equal(finish(r, run), 2);
    assert_int_equal(r->strand->items[0].result.end, MR_STRAND_STOPPED);
    assert_int_equal(r->strand->items[1].result.end, MR_STRAND_DONE);
    mr_run_free(&run);
}

static void what_a_cut_says_is_what_ran(void **state)
{
    struct rig *r = *state;
    for (uint32_t round = 0; round < 400; round++) {
        r->strand->count = 0;
        for (uint32_t i = 0; i < MR_STRAND_ITEMS_MAX; i++)
            item(r, INC, inc_one, sizeof inc_one);
        struct mr_run *run = mr_run_new(r->strand);
        mr_executor_give(r->x, run);
        for (volatile uint32_t spin = 0; spin < round * 50; spin++)
            ;
        uint32_t end = mr_strand_cursor_cut(&run->cursor, round % 7 ? 0 : 100);
        assert_int_equal(finish(r, run), end);
        for (uint32_t i = 0; i < end; i++)
            assert_int_equal(int_of(&r->strand->items[i]), 2);
        for (uint32_t i = end; i < MR_STRAND_ITEMS_MAX; i++)
            assert_int_equal(r->strand->items[i].result.started_ns, 0);
        mr_run_free(&run);
    }
}

struct race {
    struct mr_strand_cursor cursor;
    uint32_t taken;
};

static void take_all(void *ctx)
{
    struct race *race = ctx;
    uint32_t i;
    while (mr_strand_cursor_take(&race->cursor, &i))
        race->taken = i + 1;
}

static void each_item_is_taken_or_cut_never_both(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < 300; round++) {
        struct race race = {0};
        mr_strand_cursor_init(&race.cursor, 100000);
        struct mr_thread *t = mr_thread_start("taker", take_all, &race);
        uint32_t end = 100000;
        for (uint32_t keep = 90000; keep; keep = keep * 3 / 4)
            end = mr_strand_cursor_cut(&race.cursor, keep);
        mr_thread_join(&t);
        assert_int_equal(race.taken, end);
    }
}

static const unsigned char no_arguments[] = {0x90}; /* arguments [] */

/* Two executors that help each other. The worker has two slots and one place for a long-running
 * task. */
struct pair {
    struct mr_executor_env env;
    struct mr_executor *x[2];
};

static void pair_start(struct rig *r, struct pair *p)
{
    p->env = r->env;
    p->env.work_sharing = mr_work_sharing_new(3);
    p->env.slots = 2;
    for (uint32_t i = 0; i < 2; i++) {
        p->x[i] = mr_executor_start(&p->env, i);
        mr_executor_help(p->x[i], true);
    }
    item(r, SHARE, no_arguments, sizeof no_arguments);
}

static void pair_stop(struct pair *p)
{
    mr_executor_stop(&p->x[0]);
    mr_executor_stop(&p->x[1]);
    mr_work_sharing_free(&p->env.work_sharing);
}

static void an_idle_executor_helps_and_its_time_is_the_tasks(void **state)
{
    struct rig *r = *state;
    struct pair p;
    share.waits = true;
    pair_start(r, &p);
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(p.x[1], run);
    assert_int_equal(finish(r, run), 1);
    const struct mr_strand_result *result = &r->strand->items[0].result;
    assert_int_equal(result->end, MR_STRAND_DONE);
    assert_int_equal(share.lanes, 2);
    assert_int_equal(share.begun, 20);
    assert_true(share.helped >= 1);
    assert_true(result->cpu_ns >= share.helped * 150 * MR_US);
    mr_run_free(&run);
    pair_stop(&p);
}

static void work_in_blocks_is_cancelled_between_them(void **state)
{
    struct rig *r = *state;
    struct pair p;
    share.waits = true;
    share.blocks = 3;
    pair_start(r, &p);
    /* Executors without a slot neither help nor are helped, so the first block waits until the
     * cancel. */
    mr_executor_help(p.x[0], false);
    mr_executor_help(p.x[1], false);
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(p.x[0], run);
    while (!share.begun)
        mr_clock_sleep(100 * MR_US);
    mr_run_stop(run, 0);
    assert_int_equal(finish(r, run), 1);
    assert_int_equal(r->strand->items[0].result.end, MR_STRAND_STOPPED);
    assert_int_equal(share.lanes, 1); /* one lane: the executor has no helpers */
    assert_int_equal(share.begun, 1);
    mr_run_free(&run);
    pair_stop(&p);
}

static struct mr_strand_result run_moody(struct rig *r, uint32_t items)
{
    r->strand->count = 0;
    for (uint32_t i = 0; i < items; i++)
        item(r, MOODY, no_arguments, sizeof no_arguments);
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    assert_int_equal(finish(r, run), items);
    mr_run_free(&run);
    return r->strand->items[items - 1].result;
}

/* The duration of a task that sleeps is not its processor time, even if earlier tasks of the
 * operator were short. */
static void what_waits_does_not_compute_however_short_it_was_before(void **state)
{
    struct rig *r = *state;
    moody.waits = moody.computes = 0;
    /* These runs tell the executor that the operator is short. */
    (void)run_moody(r, 50);
    moody.waits = 100 * MR_MS;
    struct mr_strand_result waited = run_moody(r, 1);
    assert_true(waited.duration_ns >= 100 * MR_MS);
    assert_true(waited.cpu_ns < 20 * MR_MS);
    moody.waits = 0;
    (void)run_moody(r, 50);
    moody.computes = 10 * MR_MS;
    struct mr_strand_result computed = run_moody(r, 1);
    assert_true(computed.cpu_ns >= 9 * MR_MS);
    assert_true(computed.cpu_ns <= computed.duration_ns);
}

static void who_has_no_group_works_alone(void **state)
{
    struct rig *r = *state;
    item(r, SHARE, no_arguments, sizeof no_arguments);
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_give(r->x, run);
    assert_int_equal(finish(r, run), 1);
    assert_int_equal(share.begun, 20);
    assert_int_equal(int_of(&r->strand->items[0]), 0);
    mr_run_free(&run);
}

static void a_small_strand_runs_on_the_callers_thread(void **state)
{
    struct rig *r = *state;
    struct mr_executor *here = mr_executor_new(&r->env);
    item(r, INC, inc_one, sizeof inc_one);
    assert_true(mr_executor_is_small(&r->env, r->strand));
    struct mr_run *run = mr_run_new(r->strand);
    mr_executor_run_here(here, run);
    assert_false(mr_inbox_is_empty(r->inbox)); /* the item has run when the call returns */
    assert_int_equal(finish(r, run), 1);
    assert_int_equal(int_of(&r->strand->items[0]), 2);
    mr_run_free(&run);
    mr_executor_stop(&here);
}

static void what_may_wait_or_grow_is_not_small(void **state)
{
    static const unsigned char object[] = {
        0x91, 0xd8, MR_PACK_EXT_OBJECT, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    struct rig *r = *state;
    char large[600] = {(char)0xdc, 2, 0x55}; /* a list of 597 items, each 0 */
    item(r, SLEEP, sleep_long, sizeof sleep_long);
    assert_false(mr_executor_is_small(&r->env, r->strand));
    r->strand->count = 0;
    item(r, INC, object, sizeof object);
    assert_false(mr_executor_is_small(&r->env, r->strand));
    r->strand->count = 0;
    item(r, INC, large, sizeof large);
    assert_false(mr_executor_is_small(&r->env, r->strand));
    r->strand->count = 0;
    struct mr_strand_input input = {.kind = MR_STRAND_OBJECT};
    item(r, INC, inc_input, sizeof inc_input);
    r->strand->items[0].inputs = &input;
    r->strand->items[0].inputs_count = 1;
    assert_false(mr_executor_is_small(&r->env, r->strand));
    r->strand->count = 0;
    item(r, INC, inc_one, sizeof inc_one);
    item(r, INC, inc_one, sizeof inc_one);
    assert_false(mr_executor_is_small(&r->env, r->strand));
}

static void a_page_of_suspects_outlives_its_process(void **state)
{
    (void)state;
    char dir[] = "/tmp/mr-suspects-XXXXXX";
    assert_non_null(mkdtemp(dir));
    struct mr_crash_record *s = NULL;
    struct mr_suspect found[8], who = {{9}, 3, 2};
    uint32_t n = 99;
    assert_int_equal(mr_crash_record_open(dir, "w", 4, &s, found, 8, &n, NULL), MR_OK);
    assert_int_equal(n, 0);
    assert_false(mr_crash_record_was_left(s)); /* no process had the record before */
    mr_crash_record_begin(s, 0, &who);
    mr_crash_record_begin(s, 2, &who);
    mr_crash_record_end(s, 0);
    /* The record is opened again without a close, as after a crash of the process. */
    struct mr_crash_record *next = NULL;
    assert_int_equal(mr_crash_record_open(dir, "w", 2, &next, found, 8, &n, NULL), MR_OK);
    assert_int_equal(n, 1);
    assert_int_equal(found[0].job.v, 9);
    assert_int_equal(found[0].index, 3);
    assert_int_equal(found[0].attempt, 2);
    assert_true(mr_crash_record_was_left(next));
    mr_crash_record_begin(next, 1, &who);
    /* After an orderly close no task is a suspect. */
    mr_crash_record_close(&next);
    assert_int_equal(mr_crash_record_open(dir, "w", 2, &next, found, 8, &n, NULL), MR_OK);
    assert_int_equal(n, 0);
    assert_false(mr_crash_record_was_left(next));
    /* The process that opened `next` dies, too, but while it runs no task. The record says that the
     * process died, and names no suspects. */
    struct mr_crash_record *after = NULL;
    assert_int_equal(mr_crash_record_open(dir, "w", 2, &after, found, 8, &n, NULL), MR_OK);
    assert_int_equal(n, 0);
    assert_true(mr_crash_record_was_left(after));
    mr_crash_record_close(&after);
    mr_crash_record_close(&next);
    mr_crash_record_close(&s);
    char path[64];
    (void)snprintf(path, sizeof path, "%s/worker-w.running", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(items_of_a_strand_use_what_earlier_ones_made),
        TEST(an_array_that_a_strand_uses_up_never_reaches_the_store),
        TEST(an_array_whose_use_does_not_come_goes_to_the_store),
        TEST(a_value_that_fails_on_its_way_to_the_store_is_not_told_quietly),
        TEST(a_report_says_something_new),
        TEST(what_depends_on_a_failed_item_is_skipped),
        TEST(a_stop_ends_an_op_that_looks_at_its_flag),
        TEST(what_a_cut_says_is_what_ran),
        TEST(a_small_strand_runs_on_the_callers_thread),
        TEST(what_may_wait_or_grow_is_not_small),
        TEST(an_idle_executor_helps_and_its_time_is_the_tasks),
        TEST(work_in_blocks_is_cancelled_between_them),
        TEST(who_has_no_group_works_alone),
        TEST(what_waits_does_not_compute_however_short_it_was_before),
        TEST(what_waits_does_not_compute_however_short_it_was_before),
        cmocka_unit_test(each_item_is_taken_or_cut_never_both),
        cmocka_unit_test(a_page_of_suspects_outlives_its_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
