/* Which workers and stores were lost and have not come back (services/scheduler/live/lost.h). */
#include "services/scheduler/live/lost.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static struct mr_cluster_ring ring;
static struct mr_lost lost;

static int setup(void **state)
{
    (void)state;
    mr_cluster_ring_init(&ring, 10000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mr_cluster_ring_fini(&ring);
    return 0;
}

static void happens(
    enum mr_cluster_change change, const char *worker, const char *node, uint64_t wall_ns)
{
    struct mr_cluster_event *e = mr_cluster_ring_add(&ring, change, wall_ns);
    e->worker = worker ? mr_copy_text(worker) : NULL;
    e->node = node ? mr_copy_text(node) : NULL;
}

/* Returns how many are lost and have not come back. */
static uint32_t away(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < lost.count; i++)
        n += !lost.at[i].is_here;
    return n;
}

static void what_came_back_is_not_lost(void **state)
{
    (void)state;
    happens(MR_CLUSTER_WORKER_LOST, "old", "n", 5);
    happens(MR_CLUSTER_WORKER_LOST, "a", "n", 10);
    happens(MR_CLUSTER_WORKER_JOINED, "x", "n", 11);
    happens(MR_CLUSTER_STORE_LOST, NULL, "a", 12);
    happens(MR_CLUSTER_WORKER_LOST, "b", "n", 13);
    mr_lost_find(&ring, 10, &lost);
    assert_int_equal(lost.count, 3);
    assert_true(mr_str_eq(lost.at[0].name, MR_STR("b")));
    mr_lost_here(&lost, false, MR_STR("b"));
    mr_lost_here(&lost, false, MR_STR("old"));
    mr_lost_here(&lost, false, MR_STR("c"));
    assert_int_equal(away(), 2);
    mr_lost_here(&lost, true, MR_STR("a")); /* the store of node "a", not the worker "a" */
    assert_int_equal(away(), 1);
    assert_true(!lost.at[2].is_here && !lost.at[2].is_store);
}

static void a_worker_that_was_lost_twice_is_told_once(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3; i++)
        happens(MR_CLUSTER_WORKER_LOST, "a", "n", i);
    mr_lost_find(&ring, 0, &lost);
    assert_int_equal(away(), 1);
    assert_true(!lost.at[0].is_here && lost.at[0].wall_ns == 3);
    mr_lost_here(&lost, false, MR_STR("a"));
    assert_int_equal(away(), 0);
}

static void an_empty_ring_has_lost_nothing(void **state)
{
    (void)state;
    mr_lost_find(&ring, 0, &lost);
    mr_lost_here(&lost, false, MR_STR("a"));
    assert_int_equal(lost.count, 0);
}

/* As after an outage of the network: all workers were lost, and all came back. */
static void each_of_many_workers_is_looked_up_in_few_steps(void **state)
{
    (void)state;
    const uint32_t workers = 10000;
    char name[16];
    for (uint32_t i = 0; i < workers; i++) {
        (void)snprintf(name, sizeof name, "w-%u", i);
        happens(MR_CLUSTER_WORKER_LOST, name, "n", 100 + i);
    }
    mr_lost_find(&ring, 0, &lost);
    assert_int_equal(away(), MR_LOST_MAX);
    for (uint32_t i = 0; i < workers; i++) {
        (void)snprintf(name, sizeof name, "w-%u", i);
        mr_lost_here(&lost, false, mr_str(name));
    }
    assert_int_equal(away(), 0);
    assert_true(lost.compared <= 9 * (uint64_t)workers);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(what_came_back_is_not_lost),
        T(a_worker_that_was_lost_twice_is_told_once), T(an_empty_ring_has_lost_nothing),
        T(each_of_many_workers_is_looked_up_in_few_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
