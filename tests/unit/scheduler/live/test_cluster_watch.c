/* Cluster.Watch: when the states of workers and stores are compared. */
#include "services/scheduler/telemetry/cluster_watch.h"

#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static struct rig *rig;
static struct mr_shell sh;

static int setup(void **state)
{
    (void)state;
    rig = rig_new_empty();
    sh = (struct mr_shell){.core = rig->s, .options = {.events_kept = 100, .core = rig->c}};
    sh.cluster_watch = mr_cluster_watch_new(&sh);
    return 0;
}

static int teardown(void **state)
{
    mr_cluster_watch_free(&sh.cluster_watch);
    return rig_teardown(state);
}

static void join(const char *name)
{
    const struct rig_spec spec = {.name = name, .node = name};
    (void)rig_join(rig, &spec);
    mr_cluster_watch_dirty(&sh);
}

/* A comparison takes longer the more workers there are. So there is a pause between two of them,
 * which is as short as a few microseconds for a few workers. */
static void changes_shortly_after_one_another_are_found_together(void **state)
{
    (void)state;
    const struct mr_cluster_ring *ring = mr_cluster_watch_ring(&sh);
    mr_time now = MR_SECOND;
    mr_cluster_watch_tell(&sh, now);
    assert_true(mr_cluster_watch_deadline(&sh) == MR_NEVER);
    join("a");
    now += MR_MS;
    assert_true(mr_cluster_watch_deadline(&sh) <= now);
    mr_cluster_watch_tell(&sh, now);
    assert_int_equal(ring->last, 1);
    join("b");
    join("c");
    mr_time due = mr_cluster_watch_deadline(&sh);
    assert_true(due > now && due < now + 100 * MR_US);
    mr_cluster_watch_tell(&sh, due - 1);
    assert_int_equal(ring->last, 1);
    mr_cluster_watch_tell(&sh, due);
    assert_int_equal(ring->last, 3);
    assert_true(mr_cluster_watch_deadline(&sh) == MR_NEVER);
}

static void a_change_that_nobody_tells_is_found(void **state)
{
    (void)state;
    const struct mr_cluster_ring *ring = mr_cluster_watch_ring(&sh);
    const struct rig_spec spec = {.name = "a", .node = "a"};
    mr_time now = MR_SECOND;
    mr_cluster_watch_tell(&sh, now);
    (void)rig_join(rig, &spec);
    mr_cluster_watch_tell(&sh, now + 249 * MR_MS);
    assert_int_equal(ring->last, 0);
    mr_cluster_watch_tell(&sh, now + 250 * MR_MS);
    assert_int_equal(ring->last, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(changes_shortly_after_one_another_are_found_together),
        T(a_change_that_nobody_tells_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
