/* The scheduler's core: how the deadline of a job, and its mean number of slots, go on over
 * restarts and retries. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define ONE_TASK "{\"tasks\":{" T("x", "f", "1", "") "},\"targets\":[\"x\"]}"

static struct mr_sched_job_info info_of(struct rig *r, uint64_t job)
{
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    return info;
}

static void a_deadline_goes_on_over_a_restart(void **state)
{
    (void)state;
    for (int compact = 0; compact < 2; compact++) {
        struct rig *r = rig_new();
        uint64_t job = rig_submit(r, "{\"deadline_s\":100,\"tasks\":{" T(
                                         "x", "f", "1", "") "},\"targets\":[\"x\"]}"),
                 late = rig_submit(r, "{\"deadline_s\":50,\"tasks\":{" T(
                                          "x", "f", "1", "") "},\"targets\":[\"x\"]}");
        rig_pass(r, 30 * MR_SECOND);
        if (compact) rig_compact(r);
        r->now += 30 * MR_SECOND; /* time passes while no scheduler runs */
        rig_crash(r);
        assert_int_equal(rig_job(r, late), MR_JOB_FAILED);
        assert_int_equal(info_of(r, late).error.code, 4);
        rig_pass(r, 39 * MR_SECOND);
        assert_int_equal(rig_job(r, job), MR_JOB_PENDING);
        rig_pass(r, MR_SECOND);
        assert_int_equal(rig_job(r, job), MR_JOB_FAILED);
        (void)rig_teardown(NULL);
    }
}

/* The mean number of slots of a job begins anew with a restart: the time before the restart does
 * not count. */
static void the_slots_of_a_running_job_are_counted_after_a_restart(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 3};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = rig_submit(r, ONE_TASK);
    rig_crash(r);
    rig_pass(r, r->c.lease + MR_SECOND);
    const struct rig_spec other = {.name = "v", .slots = 5};
    w = rig_join(r, &other);
    for (int i = 0; i < 200; i++) {
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, w);
    }
    assert_in_range(mr_sched_job_slots(r->s, (mr_job_id){job}), 4500, 5000);
    rig_done(r, w, job, "x");
    assert_in_range(mr_sched_job_slots(r->s, (mr_job_id){job}), 4500, 5000);
}

/* The time between the end of a job and its retry does not count for the mean number of slots. */
static void the_slots_of_a_retried_job_are_those_of_both_runs(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w[2] = {rig_join(r, &(struct rig_spec){.name = "a", .slots = 2})};
    uint64_t job = rig_submit(r, ONE_TASK);
    /* The job runs for 10 s with 2 slots, has ended for 10 s, and runs for 10 s with 6 slots. */
    for (int i = 0; i < 30; i++) {
        if (i == 10) {
            assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
            w[1] = rig_join(r, &(struct rig_spec){.name = "b", .slots = 4});
        }
        if (i == 20) assert_int_equal(rig_ask(r, MR_SCHED_RETRY, job), MR_OK);
        rig_pass(r, MR_SECOND);
        rig_heartbeat(r, w[0]);
        if (i >= 10) rig_heartbeat(r, w[1]);
    }
    assert_int_equal(mr_sched_job_slots(r->s, (mr_job_id){job}), 4000);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    rig_pass(r, MR_SECOND);
    assert_int_equal(mr_sched_job_slots(r->s, (mr_job_id){job}), 4000);
    rig_crash(r);
    assert_int_equal(mr_sched_job_slots(r->s, (mr_job_id){job}), 4000);
}

static void a_job_that_never_ran_had_no_slots(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    (void)rig_join(r, &(struct rig_spec){.name = "w", .slots = 3, .ops = "g"});
    uint64_t job = rig_submit(r, ONE_TASK);
    rig_pass(r, MR_SECOND);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(mr_sched_job_slots(r->s, (mr_job_id){job}), 0);
}

static void a_job_that_ran_for_no_time_had_the_slots_of_that_moment(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w", .slots = 3});
    uint64_t job = rig_submit(r, ONE_TASK);
    rig_done(r, w, job, "x");
    assert_int_equal(mr_sched_job_slots(r->s, (mr_job_id){job}), 3000);
    rig_crash(r);
    assert_int_equal(mr_sched_job_slots(r->s, (mr_job_id){job}), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_deadline_goes_on_over_a_restart),
        RIG_TEST(the_slots_of_a_running_job_are_counted_after_a_restart),
        RIG_TEST(the_slots_of_a_retried_job_are_those_of_both_runs),
        RIG_TEST(a_job_that_never_ran_had_no_slots),
        RIG_TEST(a_job_that_ran_for_no_time_had_the_slots_of_that_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
