/* The ring that keeps the latest events of the cluster. Events that were overwritten are counted,
 * event ids are parsed strictly, and each change of a worker or store gives the right events. */
#include "services/scheduler/history/event_ring.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static void the_latest_are_kept_and_the_rest_is_counted(void **state)
{
    (void)state;
    struct mr_cluster_ring r;
    uint64_t missed = 7;
    mr_cluster_ring_init(&r, 4);
    assert_null(mr_cluster_ring_next(&r, 0, &missed));
    assert_int_equal(missed, 0);
    assert_int_equal(mr_cluster_ring_first(&r), 1);
    for (uint64_t i = 1; i <= 10; i++) {
        struct mr_cluster_event *e = mr_cluster_ring_add(&r, MR_CLUSTER_WORKER_JOINED, i);
        /* the ring owns the text, and releases it when the event is overwritten */
        e->worker = mr_copy_text("w");
        assert_int_equal(e->number, i);
    }
    assert_int_equal(mr_cluster_ring_first(&r), 7);
    const struct mr_cluster_event *e = mr_cluster_ring_next(&r, 6, &missed);
    assert_int_equal(e->number, 7);
    assert_int_equal(missed, 0);
    e = mr_cluster_ring_next(&r, 2, &missed);
    assert_int_equal(e->number, 7);
    assert_int_equal(missed, 4); /* events 3 to 6 were overwritten */
    assert_int_equal(mr_cluster_ring_next(&r, 9, &missed)->wall_ns, 10);
    assert_null(mr_cluster_ring_next(&r, 10, &missed));
    mr_cluster_ring_fini(&r);
}

static void an_id_is_read_as_it_was_written(void **state)
{
    (void)state;
    char text[MR_CLUSTER_ID_TEXT_MAX];
    uint64_t who = 0, number = 0;
    mr_cluster_id_format(UINT64_MAX, UINT64_MAX, text);
    assert_string_equal(text, "ffffffffffffffff-18446744073709551615");
    assert_true(mr_cluster_id_parse(mr_str(text), &who, &number));
    assert_true(who == UINT64_MAX && number == UINT64_MAX);
    assert_true(mr_cluster_id_parse(MR_STR("00c0ffee00c0ffee-0"), &who, &number));
    assert_true(who == 0x00c0ffee00c0ffee && number == 0);
    const char *const wrong[] = {"", "17", "00c0ffee00c0ffee", "00c0ffee00c0ffee-",
        "00c0ffee00c0ffee-1x", "00c0ffee00c0ffee--1", "00C0ffee00c0ffee-1", "0c0ffee00c0ffee-11",
        "g0c0ffee00c0ffee-1", "00c0ffee00c0ffee-18446744073709551616",
        "00c0ffee00c0ffee-99999999999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(mr_cluster_id_parse(mr_str(wrong[i]), &who, &number));
}

#define NONE                                                                                       \
    {                                                                                              \
        0                                                                                          \
    }
#define HERE(n)                                                                                    \
    {                                                                                              \
        .is_there = true, .is_connected = true, .incarnation = (n)                                 \
    }
#define SILENT(n)                                                                                  \
    {                                                                                              \
        .is_there = true, .incarnation = (n)                                                       \
    }
#define DRAINS(n)                                                                                  \
    {                                                                                              \
        .is_there = true, .is_connected = true, .is_retiring = true, .incarnation = (n)            \
    }

static void a_worker_s_change_has_one_meaning(void **state)
{
    (void)state;
    static const struct {
        struct mr_cluster_seen before, now;
        enum mr_cluster_change changes[MR_CLUSTER_CHANGES_MAX + 1];
    } rows[] = {
        {NONE, NONE, {0}},
        {NONE, HERE(1), {MR_CLUSTER_WORKER_JOINED}},
        {NONE, SILENT(1), {0}}, /* the scheduler knew this worker before the scheduler restarted */
        {SILENT(1), HERE(1), {MR_CLUSTER_WORKER_RETURNED}},
        {HERE(1), HERE(1), {0}},
        {HERE(1), SILENT(1), {MR_CLUSTER_WORKER_SILENT}},
        {HERE(1), DRAINS(1), {MR_CLUSTER_WORKER_DRAINING}},
        {DRAINS(1), DRAINS(1), {0}},
        {DRAINS(1), NONE, {MR_CLUSTER_WORKER_LEFT}},
        {HERE(1), NONE, {MR_CLUSTER_WORKER_LOST}},
        {SILENT(1), NONE, {MR_CLUSTER_WORKER_LOST}},
        {HERE(1), HERE(2), {MR_CLUSTER_WORKER_LOST, MR_CLUSTER_WORKER_JOINED}},
        {DRAINS(1), HERE(2), {MR_CLUSTER_WORKER_LEFT, MR_CLUSTER_WORKER_JOINED}},
        {HERE(1), DRAINS(2),
            {MR_CLUSTER_WORKER_LOST, MR_CLUSTER_WORKER_JOINED, MR_CLUSTER_WORKER_DRAINING}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum mr_cluster_change out[MR_CLUSTER_CHANGES_MAX];
        size_t n = mr_cluster_worker_changes(&rows[i].before, &rows[i].now, out);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(out[k], rows[i].changes[k]);
        assert_int_equal(rows[i].changes[n], MR_CLUSTER_NOTHING);
    }
}

static void a_store_comes_goes_and_returns(void **state)
{
    (void)state;
    const struct mr_cluster_seen none = NONE, here = HERE(1), gone = SILENT(1);
    assert_int_equal(mr_cluster_store_change(&none, &here), MR_CLUSTER_STORE_JOINED);
    assert_int_equal(mr_cluster_store_change(&none, &gone), MR_CLUSTER_NOTHING);
    assert_int_equal(mr_cluster_store_change(&here, &here), MR_CLUSTER_NOTHING);
    assert_int_equal(mr_cluster_store_change(&here, &gone), MR_CLUSTER_STORE_LOST);
    assert_int_equal(mr_cluster_store_change(&gone, &here), MR_CLUSTER_STORE_RETURNED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_latest_are_kept_and_the_rest_is_counted),
        cmocka_unit_test(an_id_is_read_as_it_was_written),
        cmocka_unit_test(a_worker_s_change_has_one_meaning),
        cmocka_unit_test(a_store_comes_goes_and_returns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
