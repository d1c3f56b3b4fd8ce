/* What roles have in common: whom they call, what they count, what a checkpoint says of itself. */
#include "services/worker/role_parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after those */
#include <cmocka.h>

static void the_own_trainer_alone_is_called_and_shown_the_secret(void **state)
{
    (void)state;
    struct mr_error e = {0};
    struct mr_role_env env = {0};
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_OK);
    env.bearer = "secret";
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "mr-worker wants --trainer=unix:/a"));
    env.trainer = "unix:/b";
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/b", &e), MR_OK);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "\"unix:/a\" is not the trainer of this worker"));
    assert_non_null(strstr(e.text, "--trainer=unix:/b"));
    env.bearer = NULL;
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_EINVAL);
    assert_int_equal(mr_role_trainer_check("unix:/b", &e), MR_OK);
    env.bearer = "secret";
    mr_role_configure(&env);
    assert_null(mr_role_bearer_for("unix:/a"));
    assert_string_equal(mr_role_bearer_for("unix:/b"), "secret");
}

static void a_loss_that_is_no_number_does_not_stay_in_the_sum(void **state)
{
    (void)state;
    struct mr_agent_counters c = {0};
    mr_agent_count_scored(&c, 3, 1, 4);
    mr_agent_count_scored(&c, (double)NAN, 0, 4);
    mr_agent_count_scored(&c, 2, 2, 4);
    assert_true(c.loss_sum == 5 && c.correct == 3);
    assert_int_equal(c.scored, 12);
    assert_int_equal(c.spoiled, 1);
}

static void a_checkpoint_says_what_it_is_of(void **state)
{
    (void)state;
    const struct mr_cut_head h = {.version = 0x123456789abcull,
        .model_count = 4000000123,
        .first = 70000,
        .slots = 2,
        .optim = MR_NN_ADAM};
    float words[MR_CUT_WORDS];
    mr_cut_head_write(&h, words);
    struct mr_cut_head got = {0};
    assert_true(mr_cut_head_read(words, &got));
    assert_int_equal(got.version, h.version);
    assert_int_equal(got.model_count, h.model_count);
    assert_int_equal(got.first, h.first);
    assert_int_equal(got.slots, h.slots);
    assert_int_equal(got.optim, h.optim);
    words[MR_CUT_WORDS - 1] = 0;
    assert_false(mr_cut_head_read(words, &got));
    words[MR_CUT_WORDS - 1] = words[0];
    words[2] = NAN;
    assert_false(mr_cut_head_read(words, &got));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_own_trainer_alone_is_called_and_shown_the_secret),
        cmocka_unit_test(a_loss_that_is_no_number_does_not_stay_in_the_sum),
        cmocka_unit_test(a_checkpoint_says_what_it_is_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
