/* The roles of a training session: parameter servers, workers, scorers. The tests check which
 * trainer the roles call, their counters, the records of checkpoints, and which parameters are kept
 * at the end. */
#include "train/state/checkpoint.h"
#include "train/state/chosen_params.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static void the_own_trainer_alone_is_called_and_shown_the_secret(void **state)
{
    (void)state;
    struct mr_error e = {0};
    static const struct mr_credential shown = {.fixed = "secret"};
    struct mr_role_env env = {0};
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_OK);
    env.for_trainer = &shown;
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "mr-worker wants --trainer=unix:/a"));
    env.trainer = "unix:/b";
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/b", &e), MR_OK);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "\"unix:/a\" is not the trainer of this worker"));
    assert_non_null(strstr(e.text, "--trainer=unix:/b"));
    env.for_trainer = NULL;
    mr_role_configure(&env);
    assert_int_equal(mr_role_trainer_check("unix:/a", &e), MR_EINVAL);
    assert_int_equal(mr_role_trainer_check("unix:/b", &e), MR_OK);
    env.for_trainer = &shown;
    mr_role_configure(&env);
    assert_null(mr_role_credential_for("unix:/a"));
    assert_ptr_equal(mr_role_credential_for("unix:/b"), &shown);
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
    const struct mr_checkpoint_head h = {.version = 0x123456789abcull,
        .model_count = 4000000123,
        .first = 70000,
        .slots = 2,
        .optim = MR_NN_ADAM};
    float words[MR_CHECKPOINT_HEAD_WORDS];
    mr_checkpoint_head_write(&h, words);
    struct mr_checkpoint_head got = {0};
    assert_true(mr_checkpoint_head_read(words, &got));
    assert_int_equal(got.version, h.version);
    assert_int_equal(got.model_count, h.model_count);
    assert_int_equal(got.first, h.first);
    assert_int_equal(got.slots, h.slots);
    assert_int_equal(got.optim, h.optim);
    words[MR_CHECKPOINT_HEAD_WORDS - 1] = 0;
    assert_false(mr_checkpoint_head_read(words, &got));
    words[MR_CHECKPOINT_HEAD_WORDS - 1] = words[0];
    words[2] = NAN;
    assert_false(mr_checkpoint_head_read(words, &got));
}

/* Returns a plan whose stop rules are `stop`, in JSON. */
static struct mr_role_plan plan_of(const char *stop)
{
    struct mr_role_plan p;
    struct mr_error e = {0};
    char *text = mr_format("{\"model\": {\"input\": [2], \"layers\": [{\"type\": \"Dense\", "
                           "\"units\": 1}]}, \"loss\": \"mse\", \"stop\": %s}",
        stop);
    int err = mr_role_plan_read(mr_str(text), "scorer", &p, &e);
    assert_string_equal(err ? e.text : "", "");
    mr_release(text);
    return p;
}

/* Adds parameters that are all `value`, with their score. */
static void scored(struct mr_chosen *c, float value, uint64_t version, const char *score)
{
    const float params[] = {value, value, value};
    const float *copy = mr_chosen_copy(c, params, version);
    assert_memory_equal(copy, params, sizeof params);
    mr_chosen_judge(c, mr_str(score));
}

static void the_parameters_that_met_the_threshold_are_kept(void **state)
{
    (void)state;
    struct mr_role_plan p = plan_of("{\"threshold\": {\"field\": \"mse\", \"below\": 0.5}}");
    assert_int_equal(p.model->count, 3);
    struct mr_chosen *c = mr_chosen_new(&p, "s.scores");
    uint64_t version = 0;
    scored(c, 1, 10, "{\"mse\": 0.9}");
    assert_null(mr_chosen_params(c, &version));
    scored(c, 2, 20, "{\"mse\": 0.4}");
    scored(c, 3, 30, "{\"mse\": 0.7}");
    scored(c, 4, 40, "{\"mse\": 0.1}");
    assert_true(mr_chosen_params(c, &version)[2] == 2);
    assert_int_equal(version, 20);
    mr_chosen_free(&c);
    mr_role_plan_fini(&p);
}

static void out_of_patience_the_best_parameters_are_kept(void **state)
{
    (void)state;
    struct mr_role_plan p =
        plan_of("{\"patience\": {\"field\": \"accuracy\", \"scores\": 2, \"mode\": \"max\"}}");
    struct mr_chosen *c = mr_chosen_new(&p, "s.scores");
    uint64_t version = 0;
    scored(c, 1, 10, "{\"accuracy\": 0.5}");
    scored(c, 2, 20, "{\"accuracy\": 0.8}");
    scored(c, 3, 30, "{\"accuracy\": 0.7}");
    assert_null(mr_chosen_params(c, &version)); /* patience has not ended the session yet */
    scored(c, 4, 40, "{\"accuracy\": \"NaN\"}");
    assert_true(mr_chosen_params(c, &version)[0] == 2);
    assert_int_equal(version, 20);
    mr_chosen_free(&c);
    mr_role_plan_fini(&p);
}

static void a_threshold_of_another_channel_chooses_nothing(void **state)
{
    (void)state;
    struct mr_role_plan p =
        plan_of("{\"threshold\": {\"field\": \"mse\", \"below\": 0.5, \"channel\": \"other\"}}");
    assert_null(mr_chosen_new(&p, "s.scores"));
    struct mr_chosen *c = mr_chosen_new(&p, "other");
    assert_non_null(c);
    mr_chosen_free(&c);
    mr_role_plan_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parameters_that_met_the_threshold_are_kept),
        cmocka_unit_test(out_of_patience_the_best_parameters_are_kept),
        cmocka_unit_test(a_threshold_of_another_channel_chooses_nothing),
        cmocka_unit_test(the_own_trainer_alone_is_called_and_shown_the_secret),
        cmocka_unit_test(a_loss_that_is_no_number_does_not_stay_in_the_sum),
        cmocka_unit_test(a_checkpoint_says_what_it_is_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
