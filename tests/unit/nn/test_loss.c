/* lib/nn/net/loss: losses, gradients and accuracy, compared with closed forms. Targets are class
 * numbers or rows. */
#include "nn/net/loss.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6)) fail_msg("%.9g, but %.9g is right", got, want);
}

static struct mr_nn_score add(enum mr_nn_loss loss, const float *out, struct mr_nn_labels y,
    uint64_t n, uint64_t k, float *grad)
{
    struct mr_nn_score s = {0};
    struct mr_error e = {0};
    if (mr_nn_loss_add(loss, out, y, n, k, grad, &s, &e)) fail_msg("%s", e.text);
    assert_int_equal(s.examples, n);
    return s;
}

/* The logits are the logarithms of 1, 2 and 5, so the probabilities are 1/8, 2/8 and 5/8. */
static const double odds[3] = {0.125, 0.25, 0.625};

static void cross_entropy_is_the_logarithm_of_the_probability(void **state)
{
    (void)state;
    const float z[6] = {0, (float)log(2), (float)log(5), 0, (float)log(2), (float)log(5)};
    const int32_t y[2] = {2, 0};
    float g[6];
    struct mr_nn_score s = add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.index = y}, 2, 3, g);
    near(s.loss_sum, -log(0.625) - log(0.125));
    assert_int_equal(s.correct, 1);
    for (int i = 0; i < 3; i++) { /* gradient of the mean: (p - y) / 2 */
        near((double)g[i], (odds[i] - (i == 2)) / 2);
        near((double)g[3 + i], (odds[i] - (i == 0)) / 2);
    }
}

static void cross_entropy_takes_any_distribution(void **state)
{
    (void)state;
    const float z[3] = {0, (float)log(2), (float)log(5)}, y[3] = {0.5f, 0.25f, 0.25f};
    float g[3];
    struct mr_nn_score s = add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.rows = y}, 1, 3, g);
    near(s.loss_sum, -0.5 * log(0.125) - 0.25 * log(0.25) - 0.25 * log(0.625));
    assert_int_equal(s.correct, 0);
    for (int i = 0; i < 3; i++)
        near((double)g[i], odds[i] - (double)y[i]);
    /* A row of targets whose sum m is not 1 weights its example: the derivative is m p - y. */
    const float heavy[3] = {0, 0, 3};
    s = add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.rows = heavy}, 1, 3, g);
    near(s.loss_sum, -3 * log(0.625));
    near((double)g[0], 3 * 0.125);
    near((double)g[2], 3 * 0.625 - 3);
}

static void cross_entropy_of_large_logits_does_not_overflow(void **state)
{
    (void)state;
    const float z[2] = {3e4f, -3e4f};
    const int32_t right = 0, wrong = 1;
    float g[2];
    near(add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.index = &right}, 1, 2, g).loss_sum, 0);
    near(
        add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.index = &wrong}, 1, 2, g).loss_sum, 6e4);
    near((double)g[0], 1);
    near((double)g[1], -1);
}

static void one_hot_rows_are_their_class_numbers(void **state)
{
    (void)state;
    const float z[8] = {0.5f, -1, 2, 0.25f, 1, 1.5f, -2, 0};
    const int32_t y[2] = {2, 3};
    const float rows[8] = {0, 0, 1, 0, 0, 0, 0, 1};
    const enum mr_nn_loss all[] = {MR_NN_CROSS_ENTROPY, MR_NN_MSE, MR_NN_HINGE};
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++) {
        float a[8], b[8];
        struct mr_nn_score one = add(all[i], z, (struct mr_nn_labels){.index = y}, 2, 4, a);
        struct mr_nn_score two = add(all[i], z, (struct mr_nn_labels){.rows = rows}, 2, 4, b);
        near(one.loss_sum, two.loss_sum);
        assert_int_equal(one.correct, 1);
        assert_int_equal(two.correct, 1);
        for (int k = 0; k < 8; k++)
            near((double)a[k], (double)b[k]);
    }
}

static void mse_is_the_mean_over_outputs_and_examples(void **state)
{
    (void)state;
    const float p[4] = {1, 2, 3, 4}, y[4] = {1, 0, 3, 7};
    float g[4];
    struct mr_nn_score s = add(MR_NN_MSE, p, (struct mr_nn_labels){.rows = y}, 2, 2, g);
    near(s.loss_sum, 4.0 / 2 + 9.0 / 2);
    near((double)g[0], 0);
    near((double)g[1], 2 * 2.0 / 4); /* gradient of the mean: 2 (p - y) / (outputs × examples) */
    near((double)g[3], 2 * -3.0 / 4);
    const int32_t value = 5; /* with one output, the label is the target value, not a class */
    s = add(MR_NN_MSE, p, (struct mr_nn_labels){.index = &value}, 1, 1, g);
    near(s.loss_sum, 16);
    near((double)g[0], -8);
}

static void hinge_asks_for_a_margin_of_one(void **state)
{
    (void)state;
    const float p[4] = {2, 0.25f, -3, 0.5f};
    const int32_t y[4] = {1, 1, -1, 0}; /* the target 0 counts as -1 */
    float g[4];
    struct mr_nn_score s = add(MR_NN_HINGE, p, (struct mr_nn_labels){.index = y}, 4, 1, g);
    near(s.loss_sum, 0 + 0.75 + 0 + 1.5);
    assert_int_equal(s.correct, 3);
    near((double)g[0], 0);
    near((double)g[1], -0.25);
    near((double)g[2], 0);
    near((double)g[3], 0.25);
    const float q[3] = {1, 3, 2.5f};
    const int32_t right = 1;
    s = add(MR_NN_HINGE, q, (struct mr_nn_labels){.index = &right}, 1, 3, g);
    near(s.loss_sum, 0.5); /* 1 + 2.5 - 3: class 2 is within the margin of 1 */
    near((double)g[0], 0);
    near((double)g[1], -1);
    near((double)g[2], 1);
    assert_int_equal(s.correct, 1);
}

static void accuracy_of_one_output_asks_for_the_nearer_side(void **state)
{
    (void)state;
    const float p[4] = {0.4f, 0.6f, 0.7f, 0.2f}, y[4] = {0, 1, 0, 0};
    assert_int_equal(add(MR_NN_MSE, p, (struct mr_nn_labels){.rows = y}, 4, 1, NULL).correct, 3);
}

static void scores_of_batches_add_up(void **state)
{
    (void)state;
    const float z[6] = {1, 0, 0, 2, 3, 1};
    const int32_t y[3] = {0, 1, 1};
    struct mr_nn_score parts = {0};
    struct mr_nn_score whole =
        add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.index = y}, 3, 2, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mr_nn_loss_add(MR_NN_CROSS_ENTROPY, z + 2 * i,
                             (struct mr_nn_labels){.index = y + i}, 1, 2, NULL, &parts, NULL),
            MR_OK);
    near(parts.loss_sum, whole.loss_sum);
    assert_int_equal(parts.correct, 2);
    assert_int_equal(parts.examples, 3);
}

static void what_is_no_number_shows_in_the_loss(void **state)
{
    (void)state;
    const float z[2] = {NAN, 1};
    const int32_t y = 1;
    const enum mr_nn_loss all[] = {MR_NN_CROSS_ENTROPY, MR_NN_MSE, MR_NN_HINGE};
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++)
        assert_true(isnan(add(all[i], z, (struct mr_nn_labels){.index = &y}, 1, 2, NULL).loss_sum));
}

static void what_cannot_be_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct mr_nn_score s = {0};
    struct mr_error e = {0};
    const float z[4] = {0};
    const int32_t y[2] = {0, -1};
    enum mr_nn_loss loss = MR_NN_MSE;
    assert_int_equal(mr_nn_loss_add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.index = y}, 2, 2,
                         NULL, &s, &e),
        MR_ERANGE);
    assert_non_null(strstr(e.text, "example 1 is -1, but the model tells classes 0 to 1 apart"));
    assert_int_equal(mr_nn_loss_add(MR_NN_CROSS_ENTROPY, z, (struct mr_nn_labels){.index = y}, 1, 1,
                         NULL, &s, &e),
        MR_EINVAL);
    assert_int_equal(s.examples, 0);
    assert_int_equal(mr_nn_loss_parse("log", &loss, &e), MR_EINVAL);
    assert_int_equal(mr_nn_loss_parse("hinge", &loss, &e), MR_OK);
    assert_string_equal(mr_nn_loss_name(loss), "hinge");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cross_entropy_is_the_logarithm_of_the_probability),
        cmocka_unit_test(cross_entropy_takes_any_distribution),
        cmocka_unit_test(cross_entropy_of_large_logits_does_not_overflow),
        cmocka_unit_test(one_hot_rows_are_their_class_numbers),
        cmocka_unit_test(mse_is_the_mean_over_outputs_and_examples),
        cmocka_unit_test(hinge_asks_for_a_margin_of_one),
        cmocka_unit_test(accuracy_of_one_output_asks_for_the_nearer_side),
        cmocka_unit_test(scores_of_batches_add_up),
        cmocka_unit_test(what_is_no_number_shows_in_the_loss),
        cmocka_unit_test(what_cannot_be_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
