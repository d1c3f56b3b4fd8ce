/* account/share: the account of slots as some of the jobs see it. */
#include "account/share.h"
#include "tests/unit/account/rig.h"

/* Returns the account of some jobs, made of the pieces that the rig took. */
static struct mr_account_share share_of(const bool *is_own, uint32_t jobs_count)
{
    struct mr_account_share s = {.is_own = is_own, .jobs_count = jobs_count};
    for (uint32_t i = 0; i < at.count; i++)
        (void)mr_account_share_add(&s, &at.pieces[i]);
    return s;
}

/* Slot 0 runs job 0 for 400 ms and then job 1 for 100 ms. Slot 1 runs job 2 for 300 ms. */
static void three_jobs(void)
{
    begin_slots(2);
    for (uint32_t job = 0; job < 3; job++)
        mr_account_job(at.a, job, job, MS(1), MS(1));
    struct mr_account_task t[] = {ran(2, 1, 1, 301), ran(0, 0, 1, 401), ran(1, 0, 401, 501)};
    for (uint32_t i = 0; i < MR_ARRAY_LEN(t); i++) {
        t[i].job = t[i].index;
        give(t[i]);
        mr_account_job_over(at.a, t[i].job, t[i].accounted, t[i].accounted);
    }
    end(2);
}

static void tasks_of_other_jobs_keep_their_class(void **state)
{
    (void)state;
    const bool is_own[] = {true, false, true};
    three_jobs();
    struct mr_account_share s = share_of(is_own, 3);
    assert_memory_equal(&s.sums, &at.sums, sizeof s.sums);
    assert_int_equal(s.sums.ns[MR_ACCOUNT_COMPUTE], MS(800));
    assert_int_equal(s.other_ns, MS(100));
    assert_int_equal(mr_account_share_busy(&s), MS(700));
}

static void idle_time_is_not_other_time(void **state)
{
    (void)state;
    const bool is_own[] = {false, false, false};
    three_jobs();
    struct mr_account_share s = share_of(is_own, 3);
    assert_int_equal(s.other_ns, MS(800));
    assert_int_equal(mr_account_share_busy(&s), 0);
    assert_int_equal(mr_account_sums_busy(&s.sums), MS(800));
}

static void without_a_choice_all_jobs_are_own(void **state)
{
    (void)state;
    three_jobs();
    struct mr_account_share s = share_of(NULL, 0);
    assert_int_equal(s.other_ns, 0);
    assert_int_equal(mr_account_share_busy(&s), MS(800));
    assert_true(mr_account_share_has(&s, MR_ACCOUNT_NONE));
}

static void a_job_that_is_not_known_is_not_own(void **state)
{
    (void)state;
    const bool is_own[] = {true, true};
    struct mr_account_share s = {.is_own = is_own, .jobs_count = 2};
    assert_true(mr_account_share_has(&s, 1));
    assert_false(mr_account_share_has(&s, 2));
    assert_false(mr_account_share_has(&s, MR_ACCOUNT_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_other_jobs_keep_their_class),
        cmocka_unit_test(idle_time_is_not_other_time),
        cmocka_unit_test(without_a_choice_all_jobs_are_own),
        cmocka_unit_test(a_job_that_is_not_known_is_not_own),
    };
    return cmocka_run_group_tests_name("account_share", tests, NULL, teardown);
}
