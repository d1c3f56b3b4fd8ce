/* lib/nn/optim/early_stopping: the rules that end a training by its scores, as the trainer and the
 * scorer apply them. */
#include "nn/optim/early_stopping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

static enum mr_nn_patience_says judge(
    const struct mr_nn_patience *rule, struct mr_nn_patience_state *s, const char *score)
{
    yyjson_doc *doc = yyjson_read(score, strlen(score), 0);
    assert_non_null(doc);
    enum mr_nn_patience_says says = mr_nn_patience_judge(rule, s, yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return says;
}

static bool is_met(const struct mr_nn_threshold *rule, const char *score, double *out)
{
    yyjson_doc *doc = yyjson_read(score, strlen(score), 0);
    assert_non_null(doc);
    bool met = mr_nn_threshold_is_met(rule, yyjson_doc_get_root(doc), out);
    yyjson_doc_free(doc);
    return met;
}

static void a_threshold_is_met_on_its_own_side_only(void **state)
{
    (void)state;
    struct mr_nn_threshold r = {.field = MR_STR_INIT("loss"), .value = 0.5};
    double x = 0;
    assert_false(is_met(&r, "{\"loss\": 0.5}", &x));
    assert_true(is_met(&r, "{\"loss\": 0.25}", &x));
    assert_true(x == 0.25);
    assert_false(is_met(&r, "{\"loss\": \"NaN\"}", &x));
    assert_false(is_met(&r, "{\"accuracy\": 0.1}", &x));
    r.is_above = true;
    assert_false(is_met(&r, "{\"loss\": 0.25}", &x));
    assert_true(is_met(&r, "{\"loss\": 1}", NULL));
    assert_false(is_met(&(struct mr_nn_threshold){0}, "{\"loss\": 1}", NULL));
}

static void patience_counts_from_the_best_score(void **state)
{
    (void)state;
    const struct mr_nn_patience r = {.field = MR_STR_INIT("loss"), .scores = 2, .min_delta = 0.1};
    struct mr_nn_patience_state s = {0};
    assert_int_equal(judge(&r, &s, "{\"loss\": 1}"), MR_NN_PATIENCE_BETTER);
    assert_int_equal(judge(&r, &s, "{\"loss\": 0.95}"), MR_NN_PATIENCE_SAME);
    assert_int_equal(judge(&r, &s, "{\"loss\": 0.8}"), MR_NN_PATIENCE_BETTER);
    assert_int_equal(judge(&r, &s, "{\"accuracy\": 0.8}"), MR_NN_PATIENCE_SAME);
    assert_int_equal(judge(&r, &s, "{\"loss\": \"Infinity\"}"), MR_NN_PATIENCE_SAME);
    assert_int_equal(judge(&r, &s, "{\"loss\": 0.75}"), MR_NN_PATIENCE_ENDS);
    assert_true(s.best == 0.8 && s.has_best);
}

static void patience_ends_when_no_score_was_a_number(void **state)
{
    (void)state;
    const struct mr_nn_patience r = {.field = MR_STR_INIT("loss"), .scores = 2, .is_max = true};
    struct mr_nn_patience_state s = {0};
    assert_int_equal(judge(&r, &s, "{\"loss\": \"NaN\"}"), MR_NN_PATIENCE_SAME);
    assert_int_equal(judge(&r, &s, "{\"loss\": \"NaN\"}"), MR_NN_PATIENCE_ENDS);
    assert_false(s.has_best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_threshold_is_met_on_its_own_side_only),
        cmocka_unit_test(patience_counts_from_the_best_score),
        cmocka_unit_test(patience_ends_when_no_score_was_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
