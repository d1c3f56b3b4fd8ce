/* Learning operators: their random numbers compared with published ones, and results on data small
 * enough to compute by hand. tests/integration/ops_sklearn.py compares results on larger data with
 * scikit-learn. */
#include "support/op_test.h"

#include "base/alloc.h"
#include "ops/ml/random.h"
#include "ops/ml/sgd.h"
#include "store/object/format/json.h"
#include "store/object/value.h"

#include <stdio.h>
#include <string.h>

/* Runs `op` and returns its result as JSON, or the error text. */
static const char *answer(const char *op, const char *args)
{
    static char text[4096];
    static unsigned char room[16384];
    struct mr_error e = {0};
    struct mr_op_result r = {0};
    struct mr_buf pack;
    mr_buf_init(&pack, sizeof room);
    assert_int_equal(mr_json_to_pack(mr_str(args), &pack, &e), MR_OK);
    memcpy(room, pack.p, pack.n);
    struct mr_str copy = mr_str_of(room, pack.n);
    mr_buf_fini(&pack);
    if (op_host_call(&host, op, copy, NULL, 0, &r, &e)) {
        (void)snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, e.text);
        return text;
    }
    op_result_json(&r, text, sizeof text);
    return text;
}

static void gives(const char *op, const char *args, const char *expected)
{
    const char *got = answer(op, args);
    if (strcmp(got, expected) != 0) fail_msg("%s %s: %s, not %s", op, args, got, expected);
}

static void fails(const char *op, const char *args, const char *words)
{
    const char *got = answer(op, args);
    if (!strstr(got, words)) fail_msg("%s %s: %s, not \"%s\"", op, args, got, words);
}

static void the_mersenne_twister_gives_its_published_numbers(void **state)
{
    (void)state;
    struct mr_mt m;
    mr_mt_init(&m, 5489); /* the reference implementation's default seed */
    assert_int_equal(mr_mt_u32(&m), 3499211612u);
    assert_int_equal(mr_mt_u32(&m), 581869302u);
    for (int i = 2; i < 9999; i++)
        (void)mr_mt_u32(&m);
    /* The C++ standard specifies the 10,000th number. */
    assert_int_equal(mr_mt_u32(&m), 4123659995u);
}

static void a_range_of_one_value_draws_nothing(void **state)
{
    (void)state;
    struct mr_mt a;
    struct mr_mt b;
    mr_mt_init(&a, 1);
    mr_mt_init(&b, 1);
    assert_int_equal(mr_mt_upto(&a, 0), 0);
    assert_int_equal(mr_mt_u32(&a), mr_mt_u32(&b));
}

static void folds_are_blocks_and_keep_the_mixture_when_stratified(void **state)
{
    (void)state;
    gives("ml.kfold", "[5, 2]", "[0,0,0,1,1]");
    gives("ml.kfold", "[[1, 1, 1, 1, 0, 0], 2, false, 0, true]", "[0,0,1,1,0,1]");
    fails("ml.kfold", "[3, 4]", "4 folds of 3 rows");
    fails("ml.kfold", "[3, 1]", "\"folds\"");
    fails("ml.kfold", "[[0, 1, 2], 2, false, 0, true]", "no class has more than 1 rows");
}

static void a_report_counts_each_class(void **state)
{
    (void)state;
    gives("ml.accuracy", "[[0, 1, 1, 0], [0, 1, 0, 0]]", "0.75");
    gives("ml.confusion_matrix", "[[\"b\", \"a\", \"a\"], [\"b\", \"a\", \"c\"]]",
        "[[1,0,1],[0,1,0],[0,0,0]]");
    gives("ml.classification_report", "[[0, 1, 1, 0], [0, 1, 0, 0]]",
        "{\"0\":{\"precision\":0.6666666666666666,\"recall\":1.0,\"f1-score\":0.8,\"support\":2},"
        "\"1\":{\"precision\":1.0,\"recall\":0.5,\"f1-score\":0.6666666666666666,\"support\":2},"
        "\"accuracy\":0.75,"
        "\"macro avg\":{\"precision\":0.8333333333333333,\"recall\":0.75,"
        "\"f1-score\":0.7333333333333334,\"support\":4},"
        "\"weighted avg\":{\"precision\":0.8333333333333333,\"recall\":0.75,"
        "\"f1-score\":0.7333333333333334,\"support\":4}}");
    fails("ml.accuracy", "[[], []]", "no labels");
    fails("ml.accuracy", "[[1, 2], [1]]", "\"y_pred\" 1");
}

static void a_first_step_is_the_rate_times_the_example(void **state)
{
    (void)state;
    /* One epoch, constant rate 0.5, no penalty. Row 1 gives the weights 0.5 (1, 2) and the
     * intercept 0.5. The score of row 2 is then -2.5 + 0.5 = -2. That is the right side, beyond the
     * margin, so row 2 changes nothing. */
    const char *fit = "{\"\": [[[1, 2], [-1, -2]], [1, 0]], \"settings\": {\"learning_rate\": "
                      "\"constant\", \"eta0\": 0.5, \"penalty\": null, \"epochs\": 1, \"shuffle\": "
                      "false}}";
    gives("ml.sgd.fit", fit,
        "{\"coef\":[[0.5,1.0]],\"intercept\":[0.5],\"classes\":[0,1],\"epochs\":[1],"
        "\"loss\":\"hinge\"}");
    fails("ml.sgd.fit", "[[[1], [2]], [0, 1], \"log\", \"l3\"]", "expected one of none, l1, l2");
    fails("ml.sgd.fit", "[[[1], [2]], [0, 1], \"log\", \"l1\", 0]", "\"alpha\"");
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void an_l1_penalty_leaves_weights_at_nought(void **state)
{
    (void)state;
    /* The second column does not depend on the class, so its weight must be exactly 0, not nearly
     * 0. */
    double x[64];
    uint32_t of[32];
    uint32_t order[32];
    double weights[2] = {0};
    double credit[2] = {0};
    double intercept = 0;
    uint32_t epochs = 0;
    for (uint32_t i = 0; i < 32; i++) {
        of[i] = i % 2;
        x[2 * (size_t)i] = i % 2 ? 1 : -1;
        x[2 * (size_t)i + 1] = i / 2 % 2 ? 0.1 : -0.1;
    }
    struct mr_sgd_settings s = {.loss = MR_SGD_LOG,
        .penalty = MR_SGD_L1,
        .rate = MR_SGD_CONSTANT,
        .alpha = 0.05,
        .eta0 = 0.1,
        .tol = 1e-4,
        .epochs = 50,
        .patience = 5};
    struct mr_sgd_rows rows = {.x = x, .of = of, .positive = 1, .rows = 32, .columns = 2};
    struct mr_sgd_work work = {
        .weights = weights, .credit = credit, .order = order, .is_cancelled = never};
    assert_int_equal(mr_sgd_fit(&s, &rows, &work, &intercept, &epochs), MR_SGD_DONE);
    assert_true(weights[0] > 0.5);
    assert_true(weights[1] == 0);
}

static void a_ranking_puts_the_best_first_and_pick_follows_it(void **state)
{
    (void)state;
    gives("ml.search.rank", "[[0.1, 0.9, 0.5]]", "[1,2,0]");
    gives("ml.search.rank", "[[0.1, 0.9, 0.5], \"min\"]", "[0,2,1]");
    gives("ml.search.pick", "[[1, 2, 0], 0, [\"a\", \"b\", \"c\"]]", "\"b\"");
    gives("ml.search.grid", "[{\"b\": [1, 2], \"a\": [\"x\"]}]",
        "[{\"a\":\"x\",\"b\":1},{\"a\":\"x\",\"b\":2}]");
    fails("ml.search.pick", "[[1], 1, [\"a\", \"b\"]]", "expected 0 to 0");
    fails("ml.search.random", "[{\"a\": {\"normal\": [0, 1]}}, 1]", "expected a list of values");
}

/* ---- nn.fit ---- */

#define XOR "[[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 0]], [0, 1, 1, 0, 0, 1, 1]"
#define NETWORK                                                                                    \
    "{\"input\": [2], \"layers\": [{\"type\": \"Dense\", \"units\": 8, \"activation\": \"tanh\"}," \
    "{\"type\": \"Dropout\", \"rate\": 0.1}, {\"type\": \"Dense\", \"units\": 2}]}"
#define ADAM "{\"type\": \"adam\", \"learning_rate\": 0.05}"

/* Runs nn.fit on `model` (NULL: NETWORK) with the arguments `rest`. Returns the result's bytes,
 * which the caller owns. */
static struct mr_str fitted(struct mr_str model, const char *rest)
{
    static unsigned char room[65536];
    struct mr_error e = {0};
    struct mr_op_result r = {0};
    char args[2048];
    (void)snprintf(args, sizeof args, "[%s, " XOR ", %s]", model.n ? "null" : NETWORK, rest);
    struct mr_buf pack;
    struct mr_buf whole;
    mr_buf_init(&pack, sizeof room);
    mr_buf_init(&whole, sizeof room);
    assert_int_equal(mr_json_to_pack(mr_str(args), &pack, &e), MR_OK);
    if (model.n) { /* replaces the null after the head of the list by input 0, the model */
        mr_buf_add(&whole, pack.p, 1);
        mr_pack_input(&whole, 0);
        mr_buf_add(&whole, pack.p + 2, pack.n - 2);
    } else {
        mr_buf_add(&whole, pack.p, pack.n);
    }
    memcpy(room, whole.p, whole.n);
    struct mr_op_input in = {.pack = model};
    struct mr_str arguments = mr_str_of(room, whole.n);
    if (op_host_call(&host, "nn.fit", arguments, &in, 1, &r, &e)) fail_msg("%s", e.text);
    mr_buf_fini(&pack);
    mr_buf_fini(&whole);
    assert_int_equal(r.kind, MR_OP_RESULT_PACK);
    char *copy = mr_alloc(r.pack.n);
    memcpy(copy, r.pack.p, r.pack.n);
    return mr_str_of(copy, r.pack.n);
}

static void drop(struct mr_str s)
{
    mr_release((void *)(uintptr_t)s.p);
}

static void epochs_in_two_parts_are_epochs_in_one(void **state)
{
    (void)state;
    const struct mr_str none = {0};
    struct mr_str whole = fitted(none, "9, 3, " ADAM ", null, 4");
    struct mr_str first = fitted(none, "4, 3, " ADAM ", null, 4");
    struct mr_str second = fitted(first, "5"); /* 5 more epochs; the rest as in `first` */
    assert_true(mr_str_eq(whole, second));
    assert_false(mr_str_eq(whole, first));
    drop(whole);
    drop(first);
    drop(second);
}

static void a_small_network_learns_exclusive_or(void **state)
{
    (void)state;
    const struct mr_str none = {0};
    struct mr_str fit = fitted(none, "200, 7, " ADAM);
    struct mr_pack_reader r = mr_pack_read(fit);
    struct mr_pack_item item;
    bool seen = false;
    assert_int_equal(mr_pack_next(&r, &item), MR_OK);
    for (uint32_t i = 0, n = item.count; i < n; i++) {
        assert_int_equal(mr_pack_next(&r, &item), MR_OK);
        if (!mr_str_eq(item.bytes, MR_STR("accuracy"))) {
            assert_int_equal(mr_pack_skip(&r, NULL), MR_OK);
            continue;
        }
        assert_int_equal(mr_pack_next(&r, &item), MR_OK);
        assert_true(item.f == 1);
        seen = true;
    }
    assert_true(seen);
    drop(fit);
}

static void a_fit_says_what_is_wrong_with_it(void **state)
{
    (void)state;
    fails("nn.fit", "[" NETWORK ", [[1, 2, 3]], [0]]", "expected rows of 2 numbers");
    fails("nn.fit", "[" NETWORK ", [[1, 2]], [0, 1]]", "expected 1 class numbers");
    fails("nn.fit", "[" NETWORK ", [[1, 2]], [7]]", "7");
    fails("nn.fit", "[" NETWORK ", [[1, 2]], [0], 1, 1, {\"type\": \"sgdx\"}]", "optimizer");
    fails("nn.fit", "[" NETWORK ", [[1, 2]], [0], 1, 1, null, \"mae\"]", "loss");
    fails("nn.fit", "[{\"layers\": []}, [[1, 2]], [0]]", "argument \"model\"");
    fails("nn.fit", "[{\"model\": 1}, [[1, 2]], [0]]", "expected what nn.fit gave");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mersenne_twister_gives_its_published_numbers),
        cmocka_unit_test(a_range_of_one_value_draws_nothing),
        cmocka_unit_test(folds_are_blocks_and_keep_the_mixture_when_stratified),
        cmocka_unit_test(a_report_counts_each_class),
        cmocka_unit_test(a_first_step_is_the_rate_times_the_example),
        cmocka_unit_test(an_l1_penalty_leaves_weights_at_nought),
        cmocka_unit_test(a_ranking_puts_the_best_first_and_pick_follows_it),
        cmocka_unit_test(epochs_in_two_parts_are_epochs_in_one),
        cmocka_unit_test(a_small_network_learns_exclusive_or),
        cmocka_unit_test(a_fit_says_what_is_wrong_with_it),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
