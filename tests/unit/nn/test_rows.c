/* lib/nn/net: predictions and scores for any number of examples. A network that only predicts gives
 * the same as a network that also learns. */
#include "base/alloc.h"
#include "base/rng.h"
#include "nn/net/rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* TEXT has every kind of layer. Some of them may write their output over their input. */
#define TEXT                                                                                       \
    "{\"input\":[6,6,2],\"layers\":["                                                              \
    "{\"type\":\"BatchNorm\"},"                                                                    \
    "{\"type\":\"Conv2D\",\"filters\":3,\"kernel\":2,\"activation\":\"relu\"},"                    \
    "{\"type\":\"MaxPool2D\",\"pool\":2},{\"type\":\"Tanh\"},{\"type\":\"Sigmoid\"},"              \
    "{\"type\":\"Dropout\",\"rate\":0.5},{\"type\":\"Flatten\"},"                                  \
    "{\"type\":\"Dense\",\"units\":6,\"activation\":\"tanh\"},"                                    \
    "{\"type\":\"Reshape\",\"shape\":[2,3]},{\"type\":\"Softmax\"}]}"

enum { IN = 72, OUT = 6, LABELS = 2, MANY = 150 };

struct rig {
    struct mr_nn_model *model;
    struct mr_nn_rows *rows;
    float *params, *x;
    int32_t *y;
};

static struct rig rig_open(uint32_t batch)
{
    struct rig g = {0};
    struct mr_error e = {0};
    if (mr_nn_model_new(MR_STR(TEXT), &g.model, &e)) fail_msg("%s", e.text);
    g.rows = mr_nn_rows_new(g.model, batch);
    g.params = mr_alloc_array(g.model->count, sizeof(float));
    g.x = mr_alloc_array(MANY * IN, sizeof(float));
    g.y = mr_alloc_array(MANY * LABELS, sizeof(int32_t));
    mr_nn_model_init(g.model, 1, g.params);
    struct mr_rng r;
    mr_rng_init(&r, 1);
    for (int i = 0; i < MANY * IN; i++)
        g.x[i] = (float)mr_rng_below(&r, 1000) / 500 - 1;
    for (int i = 0; i < MANY * LABELS; i++)
        g.y[i] = (int32_t)mr_rng_below(&r, 3);
    return g;
}

static void rig_close(struct rig *g)
{
    mr_nn_rows_free(&g->rows);
    mr_nn_model_free(&g->model);
    mr_release(g->params);
    mr_release(g->x);
    mr_release(g->y);
}

static void a_net_for_use_says_what_one_that_learns_says(void **state)
{
    (void)state;
    struct rig g = rig_open(0);
    MR_AUTO(mr_nn_net_free) struct mr_nn_net *learns = NULL;
    MR_AUTO(mr_nn_net_free) struct mr_nn_net *use = NULL;
    assert_int_equal(mr_nn_net_new(g.model, 16, &learns, NULL), MR_OK);
    assert_int_equal(mr_nn_net_new_for_use(g.model, 16, &use, NULL), MR_OK);
    const float *a = NULL, *b = NULL;
    assert_int_equal(mr_nn_net_predict(learns, g.params, g.x, &a, NULL), MR_OK);
    assert_int_equal(mr_nn_net_predict(use, g.params, g.x, &b, NULL), MR_OK);
    assert_memory_equal(a, b, 16 * OUT * sizeof(float));
    rig_close(&g);
}

static void any_number_of_rows_is_the_rows_one_by_one(void **state)
{
    (void)state;
    struct rig g = rig_open(32), one = rig_open(1);
    float *want = mr_alloc_array(MANY * OUT, sizeof(float));
    assert_int_equal(mr_nn_rows_predict(one.rows, g.params, g.x, MANY, want, NULL), MR_OK);
    const uint64_t counts[] = {0, 1, 31, 32, 33, 64, MANY, 33};
    for (size_t i = 0; i < MR_ARRAY_LEN(counts); i++) {
        float *out = mr_alloc_array(MANY * OUT, sizeof(float));
        assert_int_equal(mr_nn_rows_predict(g.rows, g.params, g.x, counts[i], out, NULL), MR_OK);
        for (uint64_t k = 0; k < counts[i] * OUT; k++)
            assert_true(fabsf(out[k] - want[k]) < 1e-6f);
        for (uint64_t k = counts[i] * OUT; k < MANY * OUT; k++)
            assert_true(out[k] == 0);
        mr_release(out);
    }
    mr_release(want);
    rig_close(&g);
    rig_close(&one);
}

/* The rows of a partition and the parameters of a shard may begin at any address. */
static void examples_and_parameters_may_lie_anywhere(void **state)
{
    (void)state;
    struct rig g = rig_open(16);
    float *want = mr_alloc_array(MANY * OUT, sizeof(float));
    float *got = mr_alloc_array(MANY * OUT, sizeof(float));
    float *x = mr_alloc_aligned((MANY * IN + 1) * sizeof(float), 64);
    float *params = mr_alloc_aligned((g.model->count + 3) * sizeof(float), 64);
    memcpy(x + 1, g.x, MANY * IN * sizeof *x);
    memcpy(params + 3, g.params, g.model->count * sizeof *params);
    assert_int_equal(mr_nn_rows_predict(g.rows, g.params, g.x, MANY, want, NULL), MR_OK);
    assert_int_equal(mr_nn_rows_predict(g.rows, params + 3, x + 1, MANY, got, NULL), MR_OK);
    for (int i = 0; i < MANY * OUT; i++)
        assert_true(fabsf(got[i] - want[i]) < 1e-6f);
    mr_release(want);
    mr_release(got);
    mr_release(x);
    mr_release(params);
    rig_close(&g);
}

static void scores_count_every_label_of_every_row(void **state)
{
    (void)state;
    struct rig g = rig_open(32), one = rig_open(1);
    assert_int_equal(mr_nn_labels_per_example(g.model), LABELS);
    struct mr_nn_score a = {0}, b = {0};
    struct mr_nn_labels y = {.index = g.y};
    struct mr_error e = {0};
    assert_int_equal(
        mr_nn_rows_score(g.rows, MR_NN_CROSS_ENTROPY, g.params, g.x, y, MANY, &a, &e), MR_OK);
    assert_int_equal(
        mr_nn_rows_score(one.rows, MR_NN_CROSS_ENTROPY, g.params, g.x, y, MANY, &b, &e), MR_OK);
    assert_int_equal(a.examples, MANY * LABELS);
    assert_int_equal(a.correct, b.correct);
    assert_true(fabs(a.loss_sum - b.loss_sum) < 1e-4);
    g.y[40] = 3;
    assert_int_equal(
        mr_nn_rows_score(g.rows, MR_NN_MSE, g.params, g.x, y, MANY, &a, &e), MR_ERANGE);
    rig_close(&g);
    rig_close(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_net_for_use_says_what_one_that_learns_says),
        cmocka_unit_test(any_number_of_rows_is_the_rows_one_by_one),
        cmocka_unit_test(examples_and_parameters_may_lie_anywhere),
        cmocka_unit_test(scores_count_every_label_of_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
