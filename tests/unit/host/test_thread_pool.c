/* host/pool/thread_pool: every item of a run is done once, by some worker of the pool. */
#include "host/pool/thread_pool.h"

#include "base/defs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define ITEMS 500

struct work {
    uint32_t done[ITEMS]; /* number of times that each item ran */
    uint32_t worker[ITEMS];
    /* Number of items that each worker ran; only that worker writes its number. */
    uint32_t by_worker[8];
};

static void do_one(void *ctx, uint32_t item, uint32_t worker)
{
    struct work *w = ctx;
    w->done[item]++;
    w->worker[item] = worker;
    w->by_worker[worker]++;
}

static struct mr_thread_pool *pool_of(uint32_t workers, bool is_placed)
{
    return is_placed ? mr_thread_pool_new_placed(workers, 1) : mr_thread_pool_new(workers);
}

static void check_pool(uint32_t workers, bool is_placed)
{
    struct mr_thread_pool *p = pool_of(workers, is_placed);
    assert_int_equal(mr_thread_pool_workers(p), workers);
    for (uint32_t round = 0; round < 200; round++) {
        struct work w = {.done = {0}};
        uint32_t count = round % 4 ? round % ITEMS : round / 4, all = 0;
        mr_thread_pool_run(p, do_one, &w, count);
        for (uint32_t i = 0; i < ITEMS; i++) {
            assert_int_equal(w.done[i], i < count);
            assert_true(w.worker[i] < workers);
        }
        for (uint32_t i = 0; i < MR_ARRAY_LEN(w.by_worker); i++)
            all += w.by_worker[i];
        assert_int_equal(all, count);
    }
    mr_thread_pool_free(&p);
    assert_null(p);
}

static void every_item_is_done_once_and_seen_by_the_caller(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 5; workers += 2)
        check_pool(workers, false);
}

static void so_it_is_in_a_placed_pool(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 5; workers += 2)
        check_pool(workers, true);
}

static void a_pool_may_end_without_a_run(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct mr_thread_pool *p = pool_of(4, i % 2);
        mr_thread_pool_free(&p);
    }
    struct mr_thread_pool *none = NULL;
    mr_thread_pool_free(&none);
}

static void every_machine_has_a_worker(void **state)
{
    (void)state;
    assert_int_equal(mr_thread_pool_workers_here(1), 1);
    uint32_t n = mr_thread_pool_workers_here(4);
    assert_true(n >= 1 && n <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once_and_seen_by_the_caller),
        cmocka_unit_test(so_it_is_in_a_placed_pool), cmocka_unit_test(a_pool_may_end_without_a_run),
        cmocka_unit_test(every_machine_has_a_worker)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
