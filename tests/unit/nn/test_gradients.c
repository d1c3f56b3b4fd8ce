/* lib/nn: the backward pass of every layer, compared with central differences of the layer's
 * forward pass.
 *
 * The forward pass is in float32. With a step of 2e-3 and losses near 1, rounding makes a
 * derivative uncertain by about 1e-4. So a gradient counts as right if its error is at most 3e-4
 * plus 1 % of the largest gradient. */
#include "base/alloc.h"
#include "base/rng.h"
#include "nn/net/net.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) fail_msg("%g, but %g is right", got, want);
}

enum { BATCH = 4 };
#define STEP 2e-3f
#define KINKS_MAX 3 /* percent of a model's parameters near which the loss may have a kink */

struct rig {
    struct mr_nn_model *model;
    struct mr_nn_net *net;
    float *params, *grads, *x, *rows;
    int32_t *index;
    uint64_t outputs;
};

static float unit(struct mr_rng *r)
{
    return (float)(mr_rng_next(r) >> 40) * 0x1p-23f - 1;
}

static struct rig rig_open(const char *json, uint64_t seed)
{
    struct rig g = {0};
    struct mr_error e = {0};
    if (mr_nn_model_new(mr_str(json), &g.model, &e)) fail_msg("%s", e.text);
    if (mr_nn_net_new(g.model, BATCH, &g.net, &e)) fail_msg("%s", e.text);
    uint64_t inputs = BATCH * mr_nn_shape_count(&g.model->input);
    g.outputs = mr_nn_shape_count(&g.model->output);
    g.params = mr_alloc_array(g.model->count, sizeof(float));
    g.grads = mr_alloc_array(g.model->count, sizeof(float));
    g.x = mr_alloc_array(inputs, sizeof(float));
    g.rows = mr_alloc_array(BATCH * g.outputs, sizeof(float));
    g.index = mr_alloc_array(BATCH * g.outputs, sizeof(int32_t));
    struct mr_rng r;
    mr_rng_init(&r, seed);
    mr_nn_model_init(g.model, seed, g.params);
    for (uint64_t i = 0; i < g.model->trainable_count; i++)
        g.params[i] += 0.1f * unit(&r);
    for (uint64_t i = 0; i < inputs; i++)
        g.x[i] = unit(&r);
    for (uint64_t i = 0; i < BATCH * g.outputs; i++)
        g.rows[i] = unit(&r);
    for (uint64_t i = 0; i < BATCH; i++)
        g.index[i] = (int32_t)mr_rng_below(&r, g.outputs);
    return g;
}

static void rig_close(struct rig *g)
{
    mr_nn_net_free(&g->net);
    mr_nn_model_free(&g->model);
    mr_release(g->params);
    mr_release(g->grads);
    mr_release(g->x);
    mr_release(g->rows);
    mr_release(g->index);
}

static double learn(struct rig *g, enum mr_nn_loss loss, float *grads)
{
    struct mr_nn_batch b = {.x = g->x, .step = 7};
    if (loss == MR_NN_MSE)
        b.y.rows = g->rows;
    else
        b.y.index = g->index;
    struct mr_nn_score s = {0};
    struct mr_error e = {0};
    if (mr_nn_net_learn(g->net, loss, g->params, &b, grads, &s, &e)) fail_msg("%s", e.text);
    return s.loss_sum / (double)s.examples;
}

static double quotient(struct rig *g, enum mr_nn_loss loss, uint64_t i, float step, float *spare)
{
    float kept = g->params[i];
    g->params[i] = kept + step;
    double up = learn(g, loss, spare);
    g->params[i] = kept - step;
    double down = learn(g, loss, spare);
    g->params[i] = kept;
    return (up - down) / (2 * (double)step);
}

static void differences_agree(const char *json, enum mr_nn_loss loss)
{
    struct rig g = rig_open(json, 3);
    (void)learn(&g, loss, g.grads);
    float *spare = mr_alloc_array(g.model->count, sizeof *spare);
    double top = 0;
    for (uint64_t i = 0; i < g.model->trainable_count; i++)
        top = fmax(top, fabs((double)g.grads[i]));
    assert_true(top > 1e-3);
    uint64_t again = 0;
    for (uint64_t i = 0; i < g.model->trainable_count; i++) {
        double got = (double)g.grads[i], within = 0.01 * top + 3e-4;
        double want = quotient(&g, loss, i, STEP, spare);
        /* Across a kink of Relu or of a maximum, the difference quotient equals neither of the two
         * derivatives. With a smaller step, the quotient may stay on one side of the kink. */
        if (fabs(want - got) > within) {
            want = quotient(&g, loss, i, STEP / 4, spare);
            again++;
        }
        if (fabs(want - got) > within)
            fail_msg("%s: parameter %llu: %g, but the difference quotient is %g", json,
                (unsigned long long)i, got, want);
    }
    /* Few parameters lie near a kink. If many parameters need a second look, the gradients are
     * wrong. */
    if (again * 100 > KINKS_MAX * g.model->trainable_count)
        fail_msg("%s: %llu of %llu parameters needed a second look", json,
            (unsigned long long)again, (unsigned long long)g.model->trainable_count);
    mr_release(spare);
    rig_close(&g);
}

#define MODEL(input, layers) "{\"input\": " input ", \"layers\": [" layers "]}"
#define DENSE(n) "{\"type\": \"Dense\", \"units\": " #n "}"
#define CONV(n, more) "{\"type\": \"Conv2D\", \"filters\": " #n ", \"kernel\": 3" more "}"

static void dense_and_mse(void **state)
{
    (void)state;
    differences_agree(MODEL("[5]", DENSE(4) "," DENSE(3)), MR_NN_MSE);
}

static void dense_over_the_last_of_two_axes(void **state)
{
    (void)state;
    differences_agree(MODEL("[3, 5]", DENSE(4) ",{\"type\": \"Flatten\"}," DENSE(2)), MR_NN_MSE);
}

static void dense_without_bias(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[5]", "{\"type\": \"Dense\", \"units\": 3, \"bias\": false}," DENSE(2)), MR_NN_MSE);
}

static void softmax_inside_cross_entropy(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[5]", DENSE(4) ",{\"type\": \"Dense\", \"units\": 3, \"activation\": \"softmax\"}"),
        MR_NN_CROSS_ENTROPY);
}

static void logits_before_cross_entropy(void **state)
{
    (void)state;
    differences_agree(MODEL("[5]", DENSE(3)), MR_NN_CROSS_ENTROPY);
}

static void softmax_as_a_layer(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[5]", DENSE(4) ",{\"type\": \"Softmax\"}," DENSE(3) ",{\"type\": \"Softmax\"}"),
        MR_NN_MSE);
}

static void relu(void **state)
{
    (void)state;
    differences_agree(MODEL("[5]", DENSE(6) ",{\"type\": \"Relu\"}," DENSE(3)), MR_NN_MSE);
}

static void tanh_and_sigmoid(void **state)
{
    (void)state;
    differences_agree(MODEL("[5]", DENSE(6) ",{\"type\": \"Tanh\"}," DENSE(
                                       4) ",{\"type\": "
                                          "\"Sigmoid\"},{\"type\": \"Tanh\"}," DENSE(3)),
        MR_NN_MSE);
}

static void hinge(void **state)
{
    (void)state;
    differences_agree(MODEL("[5]", DENSE(4)), MR_NN_HINGE);
    differences_agree(MODEL("[5]", DENSE(3) "," DENSE(1)), MR_NN_HINGE);
}

static void convolution_valid_and_same(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[7, 6, 2]", CONV(3, "") "," CONV(
                               2, ", \"padding\": \"same\"") ",{\"type\": \"Flatten\"}," DENSE(3)),
        MR_NN_CROSS_ENTROPY);
}

static void convolution_with_strides_and_uneven_kernel(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[8, 9, 1]",
            CONV(
                4, ", \"stride\": 2, \"padding\": \"same\"") ",{\"type\": \"Conv2D\", \"filters\": "
                                                             "2, \"kernel\": [2, 3], \"stride\": "
                                                             "[2, 1], \"bias\": false},"
                                                             "{\"type\": \"Flatten\"}," DENSE(2)),
        MR_NN_MSE);
}

static void convolution_of_as_many_channels_as_a_vector_has(void **state)
{
    (void)state; /* with so many channels oneDNN chooses another layout for the kernel */
    differences_agree(MODEL("[5, 5, 1]", CONV(16, ", \"activation\": \"tanh\"") "," CONV(
                                             16, "") ",{\"type\": \"Flatten\"}," DENSE(2)),
        MR_NN_CROSS_ENTROPY);
}

static void max_pooling(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[8, 8, 1]", CONV(3, ", \"activation\": \"relu\"") ",{\"type\": "
                                                                 "\"MaxPool2D\"},{\"type\": "
                                                                 "\"Flatten\"}," DENSE(3)),
        MR_NN_CROSS_ENTROPY);
    differences_agree(
        MODEL("[7, 7, 1]",
            CONV(2, "") ",{\"type\": \"MaxPool2D\", \"pool\": 3, \"stride\": 2, \"padding\": "
                        "\"same\"},{\"type\": \"Flatten\"}," DENSE(3)),
        MR_NN_MSE);
}

static void reshape_between(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[6]", DENSE(8) ",{\"type\": \"Reshape\", \"shape\": [2, 4, 1]},{\"type\": "
                              "\"Conv2D\", \"filters\": 2, \"kernel\": 2},{\"type\": "
                              "\"Reshape\", \"shape\": [6]}," DENSE(2)),
        MR_NN_MSE);
}

static void dropout_of_one_step(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[5]", DENSE(8) ",{\"type\": \"Dropout\", \"rate\": 0.4, \"seed\": 5}," DENSE(3)),
        MR_NN_MSE);
}

static void batch_normalisation(void **state)
{
    (void)state;
    differences_agree(
        MODEL("[5]", DENSE(4) ",{\"type\": \"BatchNorm\", \"activation\": \"tanh\"}," DENSE(3)),
        MR_NN_MSE);
    differences_agree(
        MODEL("[4, 4, 2]", "{\"type\": \"BatchNorm\"}," CONV(3, "") ",{\"type\": "
                                                                    "\"BatchNorm\"},{\"type\": "
                                                                    "\"Flatten\"}," DENSE(3)),
        MR_NN_CROSS_ENTROPY);
}

/* ---- what differences do not show ------------------------------------------------------------ */

static void the_moving_mean_follows_the_batches(void **state)
{
    (void)state;
    struct rig g = rig_open(
        MODEL("[1]", "{\"type\": \"BatchNorm\", \"momentum\": 0.75, \"epsilon\": 1e-6}"), 1);
    const float x[BATCH] = {1, 2, 3, 6}; /* of x: mean 3, variance 3.5 */
    memcpy(g.x, x, sizeof x);
    assert_int_equal(g.model->count, 4);
    assert_int_equal(g.model->trainable_count, 2);
    (void)learn(&g, MR_NN_MSE, g.grads);
    near((double)(g.params[2] - g.grads[2]), 0.25 * 3, 1e-6);
    near((double)(g.params[3] - g.grads[3]), 0.75 + 0.25 * 3.5, 1e-6);

    g.params[0] = 2; /* the parameters are gamma, beta, the moving mean and the moving variance */
    g.params[1] = 1;
    g.params[2] = 3;
    g.params[3] = 4;
    const float *y = NULL;
    assert_int_equal(mr_nn_net_predict(g.net, g.params, g.x, &y, NULL), MR_OK);
    for (int i = 0; i < BATCH; i++)
        near((double)y[i], 1 + (double)(x[i] - 3), 1e-5);
    rig_close(&g);
}

static void dropout_keeps_the_mean_and_passes_all_in_use(void **state)
{
    (void)state;
    struct rig g = rig_open(MODEL("[4000]", "{\"type\": \"Dropout\", \"rate\": 0.25}"), 1);
    for (int i = 0; i < BATCH * 4000; i++) {
        g.x[i] = 1;
        g.rows[i] = 0;
    }
    /* An output is 0 or 4/3, and 3/4 of the outputs stay. So the mean of the squares is 3/4 * 16/9
     * = 4/3. */
    near(learn(&g, MR_NN_MSE, g.grads), 4.0 / 3, 0.04);
    const float *y = NULL;
    assert_int_equal(mr_nn_net_predict(g.net, g.params, g.x, &y, NULL), MR_OK);
    for (int i = 0; i < BATCH * 4000; i++)
        assert_true(y[i] == 1);
    rig_close(&g);
}

static void a_convolution_counts_what_its_window_sees(void **state)
{
    (void)state;
    struct rig g = rig_open(
        MODEL("[3, 3, 1]",
            "{\"type\": \"Conv2D\", \"filters\": 1, \"kernel\": 2, \"padding\": \"same\"}"),
        1);
    for (int i = 0; i < 9; i++)
        g.x[i] = (float)(i + 1);
    const float w[] = {1, 10, 100, 1000, 0.5f}; /* the four elements of the kernel, then the bias */
    memcpy(g.params, w, sizeof w);
    const float *y = NULL;
    assert_int_equal(mr_nn_net_predict(g.net, g.params, g.x, &y, NULL), MR_OK);
    /* An even kernel is padded at the end, as in TensorFlow. */
    near((double)y[0], 1 + 20 + 400 + 5000 + 0.5, 1e-3);
    near((double)y[2], 3 + 600 + 0.5, 1e-3);
    near((double)y[8], 9.5, 1e-3);
    rig_close(&g);
}

struct heard {
    const float *grads;
    float *copy;
    uint64_t order[16]; /* where each range of gradients began, in the order of the calls */
    uint32_t calls;
    uint64_t numbers;
};

static void hear(void *ctx, uint64_t offset, uint64_t count)
{
    struct heard *h = ctx;
    assert_true(h->calls < MR_ARRAY_LEN(h->order));
    memcpy(h->copy + offset, h->grads + offset, count * sizeof(float));
    h->order[h->calls++] = offset;
    h->numbers += count;
}

static void what_is_said_to_be_ready_is_final(void **state)
{
    (void)state;
    struct rig g = rig_open(
        MODEL("[6, 6, 1]",
            CONV(4, "") ",{\"type\": \"BatchNorm\", \"activation\": \"relu\"},"
                        "{\"type\": \"Flatten\"},{\"type\": \"Dropout\", \"rate\": 0.5}," DENSE(
                            5) "," DENSE(3)),
        2);
    struct heard h = {.grads = g.grads};
    h.copy = mr_alloc_array(g.model->count, sizeof(float));
    for (uint64_t i = 0; i < g.model->count; i++)
        g.grads[i] = h.copy[i] = NAN;
    mr_nn_net_follow(g.net, hear, &h);
    (void)learn(&g, MR_NN_CROSS_ENTROPY, g.grads);
    assert_int_equal(h.numbers, g.model->count);
    assert_memory_equal(h.copy, g.grads, g.model->count * sizeof(float));
    /* Five ranges of gradients were reported, in this order: two Dense layers, BatchNorm, the state
     * of BatchNorm, Conv2D. */
    assert_int_equal(h.calls, 5);
    assert_int_equal(h.order[0], g.model->layers[6].offset);
    assert_int_equal(h.order[2], g.model->layers[1].offset);
    assert_int_equal(h.order[3], g.model->trainable_count);
    assert_int_equal(h.order[4], 0);

    mr_nn_net_follow(g.net, NULL, NULL);
    (void)learn(&g, MR_NN_CROSS_ENTROPY, g.grads);
    assert_int_equal(h.calls, 5);
    mr_release(h.copy);
    rig_close(&g);
}

static void a_label_out_of_range_is_named(void **state)
{
    (void)state;
    struct rig g = rig_open(MODEL("[5]", DENSE(3)), 1);
    g.index[2] = 3;
    struct mr_nn_batch b = {.x = g.x, .y.index = g.index};
    struct mr_nn_score s = {0};
    struct mr_error e = {0};
    assert_int_equal(
        mr_nn_net_learn(g.net, MR_NN_CROSS_ENTROPY, g.params, &b, g.grads, &s, &e), MR_ERANGE);
    assert_non_null(strstr(e.text, "example 2 is 3"));
    assert_int_equal(s.examples, 0);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_and_mse),
        cmocka_unit_test(dense_over_the_last_of_two_axes),
        cmocka_unit_test(dense_without_bias),
        cmocka_unit_test(softmax_inside_cross_entropy),
        cmocka_unit_test(logits_before_cross_entropy),
        cmocka_unit_test(softmax_as_a_layer),
        cmocka_unit_test(relu),
        cmocka_unit_test(tanh_and_sigmoid),
        cmocka_unit_test(hinge),
        cmocka_unit_test(convolution_valid_and_same),
        cmocka_unit_test(convolution_with_strides_and_uneven_kernel),
        cmocka_unit_test(convolution_of_as_many_channels_as_a_vector_has),
        cmocka_unit_test(max_pooling),
        cmocka_unit_test(reshape_between),
        cmocka_unit_test(dropout_of_one_step),
        cmocka_unit_test(batch_normalisation),
        cmocka_unit_test(the_moving_mean_follows_the_batches),
        cmocka_unit_test(dropout_keeps_the_mean_and_passes_all_in_use),
        cmocka_unit_test(a_convolution_counts_what_its_window_sees),
        cmocka_unit_test(what_is_said_to_be_ready_is_final),
        cmocka_unit_test(a_label_out_of_range_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
