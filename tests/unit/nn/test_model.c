/* lib/nn/model: the model that a list of layers becomes, and the reasons for which a list is
 * refused. */
#include "nn/model/model.h"

#include "base/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) fail_msg("%g, but %g is right", got, want);
}

static struct mr_nn_model *model(const char *json)
{
    struct mr_nn_model *m = NULL;
    struct mr_error e = {0};
    if (mr_nn_model_new(mr_str(json), &m, &e)) fail_msg("%s", e.text);
    return m;
}

static void refused(const char *json, const char *words)
{
    struct mr_nn_model *m = NULL;
    struct mr_error e = {0};
    assert_int_not_equal(mr_nn_model_new(mr_str(json), &m, &e), MR_OK);
    assert_null(m);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static const char *const cnn =
    "{\"input\": [28, 28, 1], \"layers\": ["
    "{\"type\": \"Conv2D\", \"filters\": 32, \"kernel\": 3, \"activation\": \"relu\"},"
    "{\"type\": \"BatchNorm\"}, {\"type\": \"MaxPool2D\"}, {\"type\": \"Flatten\"},"
    "{\"type\": \"Dense\", \"units\": 10, \"activation\": \"softmax\", \"name\": \"out\"}]}";

static void shapes_and_names_follow_from_the_list(void **state)
{
    (void)state;
    struct mr_nn_model *m = model(cnn);
    assert_int_equal(m->layers_count, 7);
    assert_string_equal(m->layers[0].name, "conv2d_0");
    assert_string_equal(m->layers[1].name, "conv2d_0.relu");
    assert_string_equal(m->layers[6].name, "out.softmax");
    assert_int_equal(m->layers[0].out.dims[0], 26);
    assert_int_equal(m->layers[3].out.dims[1], 13);
    assert_int_equal(m->layers[4].out.dims[0], 13 * 13 * 32);
    assert_int_equal(m->output.dims[0], 10);
    mr_nn_model_free(&m);
}

static void state_stands_behind_what_is_trained(void **state)
{
    (void)state;
    struct mr_nn_model *m = model(cnn);
    static const char *const names[] = {
        "kernel", "bias", "gamma", "beta", "kernel", "bias", "moving_mean", "moving_variance"};
    assert_int_equal(m->params_count, MR_ARRAY_LEN(names));
    uint64_t at = 0;
    for (uint32_t i = 0; i < m->params_count; i++) {
        assert_string_equal(m->params[i].name, names[i]);
        assert_int_equal(m->params[i].offset, at);
        assert_int_equal(m->params[i].trainable, at < m->trainable_count);
        at += m->params[i].count;
    }
    assert_int_equal(m->trainable_count, 9 * 32 + 32 + 64 + 54080 + 10);
    assert_int_equal(m->count, at);
    assert_int_equal(m->count, m->trainable_count + 64);
    mr_nn_model_free(&m);
}

static void a_seed_draws_the_same_numbers_within_their_bounds(void **state)
{
    (void)state;
    struct mr_nn_model *m =
        model("{\"input\": [300], \"layers\": ["
              "{\"type\": \"Dense\", \"units\": 200},"
              "{\"type\": \"Dense\", \"units\": 300, \"init\": \"he_normal\"}]}");
    float *a = mr_alloc_array(m->count, sizeof *a), *b = mr_alloc_array(m->count, sizeof *b);
    mr_nn_model_init(m, 5, a);
    mr_nn_model_init(m, 5, b);
    assert_memory_equal(a, b, m->count * sizeof *a);
    mr_nn_model_init(m, 6, b);
    assert_memory_not_equal(a, b, m->count * sizeof *a);
    for (uint32_t i = 0; i < m->params_count; i++) {
        const struct mr_nn_param *p = &m->params[i];
        double top = 0, squares = 0;
        for (uint64_t k = 0; k < p->count; k++) {
            top = fmax(top, fabs((double)a[p->offset + k]));
            squares += pow((double)a[p->offset + k], 2);
        }
        if (i == 0) { /* limits are ±sqrt(6 / 500); the variance is a third of their square */
            assert_true(top <= sqrt(6.0 / 500) && top > 0.99 * sqrt(6.0 / 500));
            near(squares / (double)p->count, 2.0 / 500, 1e-4);
        }
        if (i == 2) near(squares / (double)p->count, 2.0 / 200, 3e-4);
        if (i % 2) assert_true(top == 0); /* biases start at 0 */
    }
    mr_release(a);
    mr_release(b);
    mr_nn_model_free(&m);
}

#define L(text) "{\"input\": [8, 8, 1], \"layers\": [" text "]}"

static void what_is_wrong_is_said_with_its_place(void **state)
{
    (void)state;
    refused("{\"input\": [4]", "malformed JSON");
    refused("[]", "must be an object");
    refused("{\"input\": [4], \"layers\": []}", "\"layers\"");
    refused("{\"layers\": [{\"type\": \"Flatten\"}]}", "\"input\"");
    refused("{\"input\": [0], \"layers\": [{\"type\": \"Flatten\"}]}", "at least 1");
    refused("{\"input\": [4], \"layer\": 1}", "unknown field \"layer\"");
    refused(L("7"), "layer 0 must be an object");
    refused(L("{\"type\": \"Dens\"}"), "\"type\" is Dens");
    refused(L("{\"units\": 3}"), "missing");
    refused(L("{\"type\": \"Dense\"}"), "layer 0 (\"dense_0\"): field \"units\" is missing");
    refused(L("{\"type\": \"Dense\", \"units\": -1}"), "field \"units\" must be a whole number");
    refused(L("{\"type\": \"Flatten\", \"units\": 1}"), "Flatten has no field \"units\"");
    refused(L("{\"type\": \"Flatten\"}, {\"type\": \"Conv2D\", \"filters\": 1, \"kernel\": 2}"),
        "\"conv2d_1\": Conv2D needs 3 axes");
    refused(L("{\"type\": \"Conv2D\", \"filters\": 1, \"kernel\": 9}"), "9×9 does not fit");
    refused(L("{\"type\": \"Conv2D\", \"filters\": 1, \"kernel\": [1]}"), "[height, width]");
    refused(L("{\"type\": \"MaxPool2D\", \"padding\": \"full\"}"), "\"same\" or \"valid\"");
    refused(L("{\"type\": \"Reshape\", \"shape\": [63]}"), "holds 63 numbers, but 64 come in");
    refused(L("{\"type\": \"Dropout\", \"rate\": 1}"), "less than 1");
    refused(
        L("{\"type\": \"Dense\", \"units\": 1, \"activation\": \"swish\"}"), "softmax or linear");
    refused(L("{\"type\": \"Relu\", \"name\": \"a\"}, {\"type\": \"Tanh\", \"name\": \"a\"}"),
        "two layers are named \"a\"");
    refused(L("{\"type\": \"Relu\", \"name\": \"a/b\"}"), "letters, digits");
    refused(L("{\"type\": \"Flatten\"}, {\"type\": \"Dense\", \"units\": 100000000}"), "too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_and_names_follow_from_the_list),
        cmocka_unit_test(state_stands_behind_what_is_trained),
        cmocka_unit_test(a_seed_draws_the_same_numbers_within_their_bounds),
        cmocka_unit_test(what_is_wrong_is_said_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
