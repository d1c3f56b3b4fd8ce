/* The trainer's core: the state of a session after a role, its job or the scheduler fails. */
#include "tests/unit/trainer/rig.h"

static void a_lost_server_takes_all_back_to_the_checkpoint(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"checkpoint\":{\"every_steps\":50}");
    struct mr_training_report p = {
        .version = 50, .checkpoint_version = 50, .checkpoint_object = {1, 50}};
    (void)report(r, MR_TRAINING_PS, 0, c.ps, p);
    (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){.version = 80});
    assert_int_equal(look(r).checkpoint.version, 50);
    uint64_t again = join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_true(again > c.ps);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    assert_int_equal(look(r).restore_epoch, 2);
    assert_int_equal(look(r).restore.version, 50);
    assert_int_equal(look(r).counters.steps_lost, 30);
    /* The incarnation of the replaced server has been revoked. */
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_ESTATE);
    (void)report(r, MR_TRAINING_PS, 0, again, (struct mr_training_report){.version = 50});
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

static void who_stops_without_parameters_and_checkpoint_fails(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"stop\":{\"steps\":100}");
    (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){.version = 100});
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "ps 0 was replaced while the session stopped");
    says(look(r).reason, "there is no checkpoint");
    assert_int_equal(look(r).counters.steps_lost, 100);
    struct mr_training_member_info m;
    mr_trainer_member(r->t, r->id, 0, &m);
    /* The session has failed, so attempt 2 of the server does not take the place of attempt 1. */
    assert_int_equal(m.state, MR_MEMBER_LOST);
    assert_true(mr_str_eq(m.task, MR_STR("j1-2/0/1")));
}

static void a_lost_worker_costs_no_parameters(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    for (int i = 0; i < 4; i++) {
        (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){.version = 5});
        (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, (struct mr_training_report){0});
        tick(r, MR_SECOND);
    }
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    assert_int_equal(look(r).restores, 0);
    assert_int_equal(
        report(r, MR_TRAINING_WORKER, 0, c.worker, (struct mr_training_report){0}), MR_ESTATE);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    assert_int_equal(r->last[MR_TX_JOINED].err, MR_ESTATE); /* attempt 1 is older than attempt 2 */
}

static void a_role_that_is_lost_again_and_again_fails_the_session(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    char task[32];
    for (int i = 2; i < 20 && look(r).state != MR_TRAINING_FAILED; i++) {
        (void)snprintf(task, sizeof task, "j1-2/1/%d", i);
        (void)join(r, MR_TRAINING_WORKER, 0, task);
    }
    says(look(r).reason, "worker 0 was lost 10 times");
}

static void a_new_version_forgives_losses(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"checkpoint\":{\"every_steps\":1}");
    char task[32];
    for (uint32_t i = 2; i < 40; i++) {
        if (i % 8 == 0) {
            struct mr_training_report p = {
                .version = i, .checkpoint_version = i, .checkpoint_object = {1, i}};
            assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
        }
        (void)snprintf(task, sizeof task, "j1-2/1/%u", i);
        (void)join(r, MR_TRAINING_WORKER, 0, task);
        assert_true(look(r).state != MR_TRAINING_FAILED);
    }
    (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){0});
    uint32_t last = 40;
    for (; look(r).state != MR_TRAINING_FAILED; last++) {
        (void)snprintf(task, sizeof task, "j1-2/1/%u", last);
        (void)join(r, MR_TRAINING_WORKER, 0, task);
    }
    assert_int_equal(last, 32 + 10); /* the loss after the version counts as the first one */
}

static void a_member_that_stayed_a_minute_was_no_loss_in_a_row(void **state)
{
    struct rig *r = *state;
    /* Roles that execute the user's programs report no versions. */
    (void)start(r, "", "{\"roles\":{\"worker\":{\"count\":1,\"exec\":[\"x\"]}}}");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    for (uint32_t i = 1; i < 30; i++) {
        char task[32];
        (void)snprintf(task, sizeof task, "j1-2/0/%u", i);
        uint64_t w = join(r, MR_TRAINING_WORKER, 0, task);
        for (uint32_t k = 0; k < 61 && i % 8 == 0; k++) {
            tick(r, MR_SECOND);
            (void)report(r, MR_TRAINING_WORKER, 0, w, (struct mr_training_report){0});
        }
        assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    }
}

static void a_failure_fails_with_its_words(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    struct mr_training_report f = {.failure = MR_STR("x has 3 rows and y has 4")};
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    says(look(r).reason, "worker 0: x has 3 rows and y has 4");
}

static void a_failed_graph_fails_the_session_with_its_reason(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"graph\":{\"tasks\":{}}}"), MR_OK);
    assert_false(r->last[MR_TX_JOB_SUBMIT].roles);
    job(r, false, MR_TRAINING_JOB_FAILED, "key a: no such file");
    says(look(r).reason, "the job of its graph failed: key a: no such file");
}

static void a_scheduler_that_is_away_is_asked_again(void **state)
{
    struct rig *r = *state;
    (void)start(r, "", "{" MODEL "}");
    assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 1);
    step(r, (struct mr_trainer_event){
                .type = MR_TE_JOB_SUBMITTED, .session = r->id, .roles = true, .err = MR_EAWAY});
    tick(r, MR_SECOND);
    assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_server_takes_all_back_to_the_checkpoint),
        TEST(who_stops_without_parameters_and_checkpoint_fails),
        TEST(a_lost_worker_costs_no_parameters),
        TEST(a_role_that_is_lost_again_and_again_fails_the_session),
        TEST(a_new_version_forgives_losses),
        TEST(a_member_that_stayed_a_minute_was_no_loss_in_a_row),
        TEST(a_failure_fails_with_its_words),
        TEST(a_failed_graph_fails_the_session_with_its_reason),
        TEST(a_scheduler_that_is_away_is_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
