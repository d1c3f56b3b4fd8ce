/* The operators of generalized linear models: small fits compared with closed forms, partial sums
 * that are added in any order, and arguments that are refused. tests/integration/ops_glm.py
 * compares with published fits and with scikit-learn. */
#include "support/op_test.h"

#include "base/alloc.h"
#include "store/object/format/json.h"
#include "store/object/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value {
    struct mr_str pack;
    struct mr_str extent;
};

static struct value kept[8];
static unsigned kept_count;

/* Runs `op` and returns its result as JSON, or the error text. The result becomes input `$n` of
 * later calls, n counted from 0. In `args`, inputs are written as "$0" … "$7". */
static const char *answer(const char *op, const char *args)
{
    static char text[8192];
    static unsigned char room[16384];
    struct mr_error e = {0};
    struct mr_op_result r = {0};
    struct mr_op_input inputs[8] = {0};
    struct mr_buf pack;
    mr_buf_init(&pack, sizeof room);
    assert_int_equal(mr_json_to_pack(mr_str(args), &pack, &e), MR_OK);
    memcpy(room, pack.p, pack.n);
    /* Replaces each text of two characters that begins with "$", such as "$0", by a reference to
     * the input of that number. */
    for (size_t i = 0; i + 2 < pack.n; i++)
        if (room[i] == 0xa2 && room[i + 1] == '$') {
            unsigned input = room[i + 2] - '0';
            memmove(room + i + 6, room + i + 3, pack.n - i - 3);
            memcpy(room + i, (unsigned char[]){0xd6, 1, 0, 0, 0, (unsigned char)input}, 6);
            pack.n += 3;
        }
    struct mr_str copy = mr_str_of(room, pack.n);
    for (unsigned i = 0; i < kept_count; i++)
        inputs[i] = (struct mr_op_input){.pack = kept[i].pack, .extent = kept[i].extent};
    int err = op_host_call(&host, op, copy, inputs, kept_count, &r, &e);
    mr_buf_fini(&pack);
    if (err) {
        (void)snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, e.text);
        return text;
    }
    if (r.kind == MR_OP_RESULT_INPUT) {
        (void)snprintf(text, sizeof text, "input %u", r.input);
        return text;
    }
    op_result_json(&r, text, sizeof text);
    if (r.kind == MR_OP_RESULT_EXTENT && kept_count < MR_ARRAY_LEN(kept)) {
        char *held = mr_alloc_aligned(r.extent.n, 64);
        memcpy(held, r.extent.p, r.extent.n);
        kept[kept_count++] = (struct value){.extent = mr_str_of(held, r.extent.n)};
    }
    return text;
}

static void forget(unsigned from)
{
    while (kept_count > from)
        mr_release((void *)(uintptr_t)kept[--kept_count].extent.p);
}

static void says(const char *op, const char *args, const char *words)
{
    unsigned before = kept_count;
    const char *got = answer(op, args);
    if (!strstr(got, words)) fail_msg("%s %s: %s, not \"%s\"", op, args, got, words);
    forget(before);
}

/* Runs a fit of one chunk until the solver ends. The final state is input 0 of later calls. */
static void fit(const char *start, const char *x, const char *y)
{
    char args[1024];
    (void)answer("glm.start", start);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(args, sizeof args, "[%s, %s, \"$0\"]", x, y);
        assert_true(strstr(answer("glm.part", args), "expected") == NULL);
        assert_int_equal(kept_count, 2);
        (void)answer("glm.step", "[\"$0\", \"$1\"]");
        assert_int_equal(kept_count, 3);
        struct value state = kept[2];
        kept_count = 2;
        forget(0);
        kept[kept_count++] = state;
        const char *over = answer("glm.converged", "[\"$0\"]");
        if (strcmp(over, "true") == 0) return;
    }
    fail_msg("%s does not end", start);
}

/* Checks that the number, or the first number of the list, after `"name":` is within `far` of
 * `want`. */
static void number_is(const char *json, const char *name, double want, double far)
{
    char key[64];
    (void)snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(json, key);
    assert_non_null(at);
    at += strlen(key);
    if (*at == '[') at++;
    double got = strtod(at, NULL);
    if (!(fabs(got - want) <= far)) fail_msg("%s is %.17g, not %.17g", name, got, want);
}

#define LINE_X "[[0.0], [1.0], [2.0], [3.0]]"
#define LINE_Y "[1.0, 3.0, 5.5, 6.5]" /* slope 1.9, intercept 1.15, squared residuals 0.45 */

static void every_smooth_solver_finds_a_straight_line(void **state)
{
    (void)state;
    static const char *const solvers[] = {"gd", "newton", "lbfgs", "proximal", "admm"};
    for (size_t i = 0; i < MR_ARRAY_LEN(solvers); i++) {
        char start[64];
        (void)snprintf(start, sizeof start, "[\"normal\", \"%s\"]", solvers[i]);
        fit(start, LINE_X, LINE_Y);
        const char *s = answer("glm.summary", "[\"$0\"]");
        number_is(s, "coef", 1.9, 1e-6);
        number_is(s, "intercept", 1.15, 1e-6);
        number_is(s, "deviance", 0.45, 1e-6);
        number_is(s, "rows", 4, 0);
        assert_non_null(strstr(s, "\"converged\":true"));
        forget(0);
    }
}

static void a_preconditioned_fit_of_columns_that_hang_together_is_soon_over(void **state)
{
    (void)state;
    /* The second column differs from the first by at most a thousandth. No noise is added to y. */
    const char *x = "[[1.0, 1.001], [2.0, 2.0], [3.0, 2.999], [4.0, 4.001], [5.0, 5.0]]";
    const char *y = "[5.002, 8.0, 10.998, 14.002, 17.0]"; /* coefficients 1 and 2, intercept 2 */
    static const char *const solvers[] = {"gd", "lbfgs", "proximal", "admm"};
    for (size_t i = 0; i < MR_ARRAY_LEN(solvers); i++) {
        char start[128];
        (void)snprintf(start, sizeof start,
            "[\"normal\", \"%s\", \"none\", 0, 0.5, true, 1e-10, null, 8, null, null, 0, true]",
            solvers[i]);
        fit(start, x, y);
        const char *s = answer("glm.summary", "[\"$0\"]");
        number_is(s, "coef", 1, 1e-5);
        number_is(s, "intercept", 2, 1e-5);
        number_is(s, "evaluations", 0, 60);
        assert_non_null(strstr(s, "\"converged\":true"));
        forget(0);
    }
    says("glm.start",
        "[\"normal\", \"gd\", \"none\", 0, 0.5, true, 1e-8, null, 8, null, null, 0, 1]",
        "precondition");
}

static void separated_classes_are_named_and_a_penalty_holds_them(void **state)
{
    (void)state;
    static const char *const solvers[] = {"gd", "newton", "lbfgs", "proximal", "admm"};
    for (size_t i = 0; i < MR_ARRAY_LEN(solvers); i++) {
        char start[64];
        (void)snprintf(start, sizeof start, "[\"logistic\", \"%s\"]", solvers[i]);
        fit(start, LINE_X, "[0, 0, 1, 1]");
        const char *s = answer("glm.summary", "[\"$0\"]");
        assert_non_null(strstr(s, "\"converged\":false"));
        assert_non_null(strstr(s, "the classes are separated"));
        forget(0);
        (void)snprintf(start, sizeof start, "[\"logistic\", \"%s\", \"l2\", 0.1]", solvers[i]);
        fit(start, LINE_X, "[0, 0, 1, 1]");
        assert_non_null(strstr(answer("glm.summary", "[\"$0\"]"), "\"converged\":true"));
        forget(0);
    }
}

static void an_l1_penalty_moves_coefficients_as_far_as_it_weighs(void **state)
{
    (void)state;
    /* The columns are orthogonal and of mean square 1. So the l1 penalty shrinks each coefficient
     * by alpha, at most to 0. */
    const char *x = "[[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]";
    /* Without a penalty the coefficients are 2.75 and 0.25. */
    const char *y = "[3.0, 2.5, -2.5, -3.0]";
    static const char *const solvers[] = {"proximal", "admm"};
    for (size_t i = 0; i < MR_ARRAY_LEN(solvers); i++) {
        char start[96];
        (void)snprintf(start, sizeof start, "[\"normal\", \"%s\", \"l1\", 0.5]", solvers[i]);
        fit(start, x, y);
        const char *s = answer("glm.coef", "[\"$0\"]");
        double first = strtod(s + 1, NULL);
        double second = strtod(strchr(s, ',') + 1, NULL);
        assert_true(fabs(first - 2.25) < 1e-6);
        assert_true(second == 0);
        forget(0);
    }
}

static void a_rate_alone_is_the_logarithm_of_the_mean(void **state)
{
    (void)state;
    fit("[\"poisson\", \"newton\"]", "[[0.0], [0.0], [1.0], [1.0]]", "[1, 3, 6, 10]");
    const char *s = answer("glm.summary", "[\"$0\"]");
    number_is(s, "intercept", log(2), 1e-12);
    number_is(s, "coef", log(4), 1e-12);
    number_is(s, "std_err", sqrt(1 / 4.0 + 1 / 16.0), 1e-9);
    says("glm.predict", "[\"$0\", [[0.0], [1.0]]]", "[2.0");
    says("glm.predict", "[\"$0\", [[0.0]], \"class\"]", "has no classes");
    forget(0);
}

static void partials_add_up_in_any_tree(void **state)
{
    (void)state;
    (void)answer("glm.start", "[\"logistic\", \"newton\"]");
    (void)answer("glm.part", "[[[1.0], [2.0]], [0, 1], \"$0\"]");
    (void)answer("glm.part", "[[[3.0]], [1], \"$0\", 1]");
    (void)answer("glm.part", "[[[1.0], [2.0], [3.0]], [0, 1, 1], \"$0\"]");
    char whole[2048];
    char sum[2048];
    (void)snprintf(whole, sizeof whole, "%s", answer("glm.step", "[\"$0\", \"$3\"]"));
    forget(4);
    (void)answer("glm.add", "[\"$1\", \"$2\"]");
    (void)snprintf(sum, sizeof sum, "%s", answer("glm.step", "[\"$0\", \"$4\"]"));
    forget(5);
    assert_string_equal(whole, sum);
    assert_string_equal(whole, answer("glm.step", "[\"$0\", \"$1\", \"$2\"]"));
    forget(0);
}

static void parts_of_one_chunk_add_up_to_it(void **state)
{
    (void)state;
    (void)answer("glm.start", "[\"logistic\", \"newton\"]");
    (void)answer(
        "glm.part", "[[[1.0], [2.0], [3.0]], [0, 1, 1], \"$0\", 0, null, null, null, [0, 2]]");
    (void)answer(
        "glm.part", "[[[1.0], [2.0], [3.0]], [0, 1, 1], \"$0\", 0, null, null, null, [2, 3]]");
    (void)answer("glm.part", "[[[1.0], [2.0], [3.0]], [0, 1, 1], \"$0\"]");
    char whole[2048];
    (void)snprintf(whole, sizeof whole, "%s", answer("glm.step", "[\"$0\", \"$3\"]"));
    forget(4);
    assert_string_equal(whole, answer("glm.step", "[\"$0\", \"$1\", \"$2\"]"));
    forget(3);
    /* An empty range of rows is allowed. */
    (void)answer("glm.part", "[[[1.0]], [0], \"$0\", 0, null, null, null, [1, 1]]");
    forget(3);
    const char *const bad[] = {"[1, 0]", "[-1, 1]", "[0, 2]", "[0]", "[0, 0.5]"};
    for (unsigned i = 0; i < 5; i++) {
        char args[128];
        (void)snprintf(
            args, sizeof args, "[[[1.0]], [0], \"$0\", 0, null, null, null, %s]", bad[i]);
        says("glm.part", args, "argument \"rows\", chunk 0: expected [from, to)");
    }
    forget(0);
}

static void a_part_that_makes_the_step_itself_answers_as_one_told_of_it(void **state)
{
    (void)state;
    (void)answer("glm.start", "[\"logistic\", \"gd\"]");
    (void)answer("glm.part", "[[[1.0], [2.0]], [0, 1], \"$0\"]");
    (void)answer("glm.part", "[[[3.0], [1.5]], [1, 0], \"$0\", 1]");
    (void)answer("glm.step", "[\"$0\", \"$1\", \"$2\"]");
    char told[2048];
    (void)snprintf(told, sizeof told, "%s", answer("glm.part", "[[[1.0], [2.0]], [0, 1], \"$3\"]"));
    forget(4);
    assert_string_equal(
        told, answer("glm.part",
                  "[[[1.0], [2.0]], [0, 1], \"$0\", 0, null, null, [\"$1\", null, \"$2\"]]"));
    forget(4);
    /* If all partial results are null, glm.part uses the state as it is. */
    (void)snprintf(told, sizeof told, "%s", answer("glm.part", "[[[1.0], [2.0]], [0, 1], \"$0\"]"));
    forget(4);
    assert_string_equal(
        told, answer("glm.part", "[[[1.0], [2.0]], [0, 1], \"$0\", 0, null, null, [null, null]]"));
    forget(4);
    /* If all partial results are null, glm.step returns its state, here input 3. */
    assert_string_equal(answer("glm.step", "[\"$3\", null, null]"), "input 3");
    forget(0);
}

static void what_is_wrong_is_named_with_its_chunk_and_row(void **state)
{
    (void)state;
    says("glm.start", "[\"gamma\"]", "\"family\": expected logistic, normal or poisson");
    says("glm.start", "[\"normal\", \"sgd\"]", "\"solver\": expected gd, newton");
    says("glm.start", "[\"normal\", \"newton\", \"l1\"]", "proximal and admm take l1");
    says("glm.start", "[\"normal\", \"proximal\", \"l1\", -1]", "\"alpha\"");
    says("glm.start", "[\"normal\", \"proximal\", \"elasticnet\", 1, 2]", "\"l1_ratio\"");
    (void)answer("glm.start", "[\"logistic\"]");
    says("glm.part", "[[[1.0], [2.0]], [0, 2], \"$0\", 3]",
        "argument \"y\", chunk 3, row 1: 2 is neither 0 nor 1");
    says("glm.part", "[[[1.0], [2.0]], [0, 1, 1], \"$0\", 5]",
        "argument \"y\", chunk 5: it has 3 rows of 1, \"x\" 2 rows");
    says(
        /* With weights, y may be a share such as 0.5. */
        "glm.part", "[[[1.0], [2.0]], [0, 0.5], \"$0\", 0, [1, 1]]", "[");
    says("glm.part", "[[[1.0]], [0.5], \"$0\", 0, [-1]]", "\"weights\", chunk 0, row 0: -1");
    says("glm.coef", "[\"$0\"]", "no glm.step was made");
    forget(0);
    (void)answer("glm.start", "[\"poisson\"]");
    says("glm.part", "[[[1.0]], [-1], \"$0\", 2]", "chunk 2, row 0: -1 is less than 0");
    (void)answer("glm.part", "[[[1.0]], [1], \"$0\"]");
    (void)answer("glm.part", "[[[1.0, 2.0]], [1], \"$0\"]");
    says("glm.step", "[\"$0\", \"$1\", \"$2\"]", "number 1 is of 2 columns, number 0 of 1");
    says("glm.step", "[\"$1\", \"$1\"]", "expected what glm.start or glm.step gave");
    says("glm.step", "[\"$0\", \"$0\"]", "expected what glm.part or glm.add gave");
    forget(0);
}

static void chunks_of_admm_need_numbers_of_their_own(void **state)
{
    (void)state;
    (void)answer("glm.start", "[\"normal\", \"admm\"]");
    (void)answer("glm.part", "[[[1.0], [2.0]], [1, 2], \"$0\", 0]");
    (void)answer("glm.step", "[\"$0\", \"$1\", \"$1\"]");
    (void)answer("glm.part", "[[[1.0], [2.0]], [1, 2], \"$2\", 1]");
    says("glm.step", "[\"$2\", \"$3\", \"$3\"]", "two chunks say they are number 1");
    says("glm.part", "[[[1.0], [2.0]], [1, 2], \"$2\", 2]", "2, and 2 chunks began the fit");
    forget(0);
}

static void an_infinite_number_is_found_in_the_first_look(void **state)
{
    (void)state;
    double x[6] = {1, 2, 3, 4, INFINITY, 6};
    uint64_t shape[2] = {3, 2};
    static _Alignas(64) unsigned char room[1024];
    uint64_t bytes = mr_tensor_bytes(MR_DTYPE_F64, 2, shape);
    assert_true(bytes <= sizeof room);
    memcpy(mr_tensor_build(room, MR_DTYPE_F64, 2, shape), x, sizeof x);
    char *held = mr_alloc_aligned((size_t)bytes, 64);
    memcpy(held, room, (size_t)bytes);
    kept[kept_count++] = (struct value){.extent = mr_str_of(held, (size_t)bytes)};
    (void)answer("glm.start", "[\"normal\"]");
    says(
        "glm.part", "[\"$0\", [1, 2, 3], \"$1\", 7]", "\"x\", chunk 7, row 2: inf is not a finite");
    forget(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_smooth_solver_finds_a_straight_line),
        cmocka_unit_test(a_preconditioned_fit_of_columns_that_hang_together_is_soon_over),
        cmocka_unit_test(separated_classes_are_named_and_a_penalty_holds_them),
        cmocka_unit_test(an_l1_penalty_moves_coefficients_as_far_as_it_weighs),
        cmocka_unit_test(a_rate_alone_is_the_logarithm_of_the_mean),
        cmocka_unit_test(partials_add_up_in_any_tree),
        cmocka_unit_test(parts_of_one_chunk_add_up_to_it),
        cmocka_unit_test(a_part_that_makes_the_step_itself_answers_as_one_told_of_it),
        cmocka_unit_test(what_is_wrong_is_named_with_its_chunk_and_row),
        cmocka_unit_test(chunks_of_admm_need_numbers_of_their_own),
        cmocka_unit_test(an_infinite_number_is_found_in_the_first_look),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
