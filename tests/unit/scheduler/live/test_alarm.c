/* The rules for alarms, and the texts in a live state (text.h). */
#include "services/scheduler/live/alarm.h"

#include "services/scheduler/live/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static struct mr_alarms alarms;
static const struct mr_alarm_limits limits = {.heartbeat = MR_SECOND, .lease = 9 * MR_SECOND};

static int setup(void **state)
{
    (void)state;
    alarms = (struct mr_alarms){0};
    return 0;
}

static void a_healthy_cluster_has_no_alarm(void **state)
{
    (void)state;
    mr_alarms_cluster(&alarms, &(struct mr_alarm_cluster){.workers = 1, .stores = 1});
    mr_alarms_worker(&alarms, &limits, MR_STR("w"), true, 3 * MR_SECOND);
    const struct mr_alarm_store store = {
        .node = MR_STR_INIT("n"), .memory_bytes = 1000, .used_bytes = 900, .silent = 1};
    mr_alarms_store(&alarms, &limits, &store);
    assert_int_equal(alarms.count, 0);
}

static void each_fact_about_the_cluster_has_its_alarm(void **state)
{
    (void)state;
    mr_alarms_cluster(
        &alarms, &(struct mr_alarm_cluster){.is_redis_away = true, .is_recovering = true});
    static const char *const kinds[] = {"redis_away", "recovering", "no_worker", "no_store"};
    assert_int_equal(alarms.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(alarms.at[i].kind, kinds[i]);
}

static void an_idle_worker_may_be_silent_for_longer_than_a_heartbeat(void **state)
{
    (void)state;
    mr_duration silence = mr_alarm_silence(&limits);
    assert_true(silence == 5 * MR_SECOND);
    mr_alarms_worker(&alarms, &limits, MR_STR("w"), true, silence - 1);
    assert_int_equal(alarms.count, 0);
    mr_alarms_worker(&alarms, &limits, MR_STR("w"), true, silence);
    assert_int_equal(alarms.count, 1);
    assert_string_equal(alarms.at[0].kind, "worker_silent");
    assert_string_equal(alarms.at[0].subject, "w");
    assert_string_equal(
        alarms.at[0].text, "Worker w has been silent for 5 s, although its connection is open");
}

static void a_broken_connection_is_told_at_once(void **state)
{
    (void)state;
    mr_alarms_worker(&alarms, &limits, MR_STR("w"), false, 0);
    assert_int_equal(alarms.count, 1);
    assert_string_equal(alarms.at[0].text, "The connection to worker w broke 0 s ago");
}

static void a_store_can_have_several_alarms(void **state)
{
    (void)state;
    const struct mr_alarm_store store = {.node = MR_STR_INIT("n1"),
        .silent = 60 * MR_SECOND,
        .memory_bytes = (uint64_t)64 << 20,
        .used_bytes = (uint64_t)63 << 20,
        .disk_full = MR_STR_INIT("/data")};
    mr_alarms_store(&alarms, &limits, &store);
    assert_int_equal(alarms.count, 3);
    assert_string_equal(alarms.at[0].kind, "store_silent");
    assert_string_equal(alarms.at[1].text, "The disk of /data on node n1 has no space left");
    assert_string_equal(
        alarms.at[2].text, "The object store of node n1 is full: 98 % of 64 MiB are in use");
    assert_true(mr_alarm_is_full(&store));
}

static void a_store_without_a_budget_is_not_full(void **state)
{
    (void)state;
    assert_false(mr_alarm_is_full(&(struct mr_alarm_store){.used_bytes = UINT64_MAX}));
}

static void alarms_beyond_the_limit_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < MR_ALARMS_MAX + 7; i++)
        mr_alarms_worker_lost(&alarms, MR_STR("w"), MR_SECOND);
    assert_int_equal(alarms.count, MR_ALARMS_MAX);
    assert_int_equal(alarms.more, 7);
    assert_string_equal(alarms.at[0].text, "Worker w was lost 1 s ago");
}

static void texts_need_no_escapes_and_stay_valid(void **state)
{
    (void)state;
    char out[8];
    mr_live_text(MR_STR("a\"b\\c\n"), out, sizeof out);
    assert_string_equal(out, "a?b?c?");
    mr_live_text(MR_STR("1234567"), out, sizeof out);
    assert_string_equal(out, "1234567");
    mr_live_text(MR_STR("12345678"), out, sizeof out);
    assert_string_equal(out, "1234...");
    mr_live_text(MR_STR("123\xc3\xa9"
                        "678"),
        out, sizeof out); /* no part of a character */
    assert_string_equal(out, "123...");
    mr_live_text(MR_STR(""), out, sizeof out);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_healthy_cluster_has_no_alarm, setup),
        cmocka_unit_test_setup(each_fact_about_the_cluster_has_its_alarm, setup),
        cmocka_unit_test_setup(an_idle_worker_may_be_silent_for_longer_than_a_heartbeat, setup),
        cmocka_unit_test_setup(a_broken_connection_is_told_at_once, setup),
        cmocka_unit_test_setup(a_store_can_have_several_alarms, setup),
        cmocka_unit_test_setup(a_store_without_a_budget_is_not_full, setup),
        cmocka_unit_test_setup(alarms_beyond_the_limit_are_counted, setup),
        cmocka_unit_test(texts_need_no_escapes_and_stay_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
