/* The account of a training role: four shares of its run have classes of their own, and the role
 * has a slot of its own while it exists. */
#include "account/training_shares.h"
#include "tests/unit/account/rig.h"

static mr_duration share_ns(const mr_duration ns[MR_TRAINING_PARTS], enum mr_training_part part)
{
    return mr_training_part_ns(mr_training_shares(ns, MS(1000)), part, MS(1000));
}

static void shares_are_rounded_to_a_part_in_65535(void **state)
{
    (void)state;
    const mr_duration ns[MR_TRAINING_PARTS] = {0, 1, MS(333), MS(5000)};
    assert_int_equal(share_ns(ns, MR_TRAINING_FEED), 0);
    assert_int_equal(share_ns(ns, MR_TRAINING_PULL), 0);
    assert_in_range(share_ns(ns, MR_TRAINING_PUSH), MS(333) - MS(1000) / 65535, MS(334));
    assert_int_equal(share_ns(ns, MR_TRAINING_WAIT), MS(1000)); /* not more than the whole */
    assert_int_equal(mr_training_shares(ns, 0), 0);
}

/* A training role runs beside slot 0, as lane 1, from 201 to 801. It was ready at 101. Lane 1
 * exists only for the role, so its time before 101 and after 801 is in no class. */
static void the_run_of_a_training_role_has_a_lane_of_its_own(void **state)
{
    (void)state;
    const mr_duration ns[MR_TRAINING_PARTS] = {MS(60), MS(30), MS(90), MS(120)};
    begin_slots(1);
    mr_account_job(at.a, 0, 0, MS(1), MS(1));
    struct mr_account_task t = ran(0, 1, 201, 801);
    t.ready = MS(101);
    t.sent = MS(121);
    t.training = mr_training_shares(ns, MS(600));
    t.cpu_ns = MS(200);
    t.is_beside = true;
    give(t);
    mr_account_job_over(at.a, 0, MS(1001), MS(1001));
    mr_account_close(&at.a);
    mr_duration sum = 0, slots = 0;
    for (uint32_t i = 0; i < at.count; i++) {
        const struct mr_account_piece *p = &at.pieces[i];
        sum += p->to - p->from;
        slots += p->lane ? 0 : p->to - p->from;
        if (p->lane) assert_true(p->from >= MS(101) && p->to <= MS(801));
    }
    assert_true(slots == MS(1000) && sum == MS(1700));
    assert_int_equal(ms_of(MR_ACCOUNT_FEED), 60);
    assert_int_equal(ms_of(MR_ACCOUNT_PULL), 30);
    assert_int_equal(ms_of(MR_ACCOUNT_PUSH), 90);
    assert_int_equal(ms_of(MR_ACCOUNT_WAIT), 120);
    assert_int_equal(ms_of(MR_ACCOUNT_COMPUTE), 200);
    assert_int_equal(ms_of(MR_ACCOUNT_BLOCKED), 100);
    /* slot 0 also waits until the role starts */
    assert_int_equal(ms_of(MR_ACCOUNT_SEND), 2 * 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_rounded_to_a_part_in_65535),
        cmocka_unit_test(the_run_of_a_training_role_has_a_lane_of_its_own),
    };
    return cmocka_run_group_tests_name("account_training", tests, NULL, teardown);
}
