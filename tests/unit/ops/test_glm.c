/* Generalized linear models: the approximations against the C library, a pass against sums written
 * out row by row, and small fits against closed forms. tests/integration/ops_glm.py compares with
 * published fits and with scikit-learn. */
#include "support/op_test.h"

#include "base/alloc.h"
#include "ops/glm/glm.h"
#include "ops/glm/exp_log.h"
#include "ops/glm/solve.h"
#include "store/object/format/json.h"
#include "store/object/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* How many units in the last place `got` is from `want`. */
static double ulps(double got, double want)
{
    return fabs(got - want) / (nextafter(fabs(want), INFINITY) - fabs(want));
}

static void the_exponential_is_exact_to_two_units_in_the_last_place(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = -708000; i <= 709000; i += 7) {
        double x = i * 1e-3;
        worst = fmax(worst, ulps(mr_glm_exp(x), exp(x)));
        worst = fmax(worst, ulps(mr_glm_exp(x * 1e-3), exp(x * 1e-3)));
    }
    assert_true(worst <= 2);
    assert_true(mr_glm_exp(0) == 1);
    assert_true(mr_glm_exp(-1e300) > 0 && mr_glm_exp(-1e300) < 1e-300);
    assert_true(mr_glm_exp(1e300) > 1e300);
    assert_true(isnan(mr_glm_exp(NAN)));
}

static void the_logarithm_is_exact_to_three_units_in_the_last_place(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i <= 1000000; i++) {
        double e = i * 1e-6;
        if (i) worst = fmax(worst, ulps(mr_glm_log1p(e), log1p(e)));
        if (i) worst = fmax(worst, ulps(mr_glm_log1p(e * 1e-9), log1p(e * 1e-9)));
    }
    assert_true(worst <= 3);
    assert_true(mr_glm_log1p(0) == 0);
    assert_true(mr_glm_log1p(1) == log(2) || ulps(mr_glm_log1p(1), log(2)) <= 1);
}

/* ---- a pass ---- */

#define ROWS_MAX 300
#define COLUMNS_MAX 21

struct rows {
    double x[ROWS_MAX * COLUMNS_MAX];
    double y[ROWS_MAX];
    double weights[ROWS_MAX];
    double offset[ROWS_MAX];
};

static double noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0 * 2 - 1;
}

static void fill(struct rows *r, uint32_t columns, uint64_t rows, enum mr_glm_family family)
{
    uint64_t seed = rows * 31 + columns;
    for (uint64_t i = 0; i < rows * columns; i++)
        r->x[i] = noise(&seed);
    for (uint64_t i = 0; i < rows; i++) {
        double v = noise(&seed);
        r->y[i] = family == MR_GLM_LOGISTIC  ? v > 0
                  : family == MR_GLM_POISSON ? floor(3 + 3 * v)
                                             : v;
        r->weights[i] = 1 + noise(&seed) / 2;
        r->offset[i] = noise(&seed);
    }
}

/* Loss, mean and variance of a row, by their definitions. */
static void by_definition(enum mr_glm_family family, double h, double y, double out[3])
{
    if (family == MR_GLM_LOGISTIC) {
        double mean = 1 / (1 + exp(-h));
        out[0] = log1p(exp(h)) - y * h;
        out[1] = mean;
        out[2] = mean * (1 - mean);
    } else if (family == MR_GLM_POISSON) {
        out[0] = exp(h) - y * h;
        out[1] = out[2] = exp(h);
    } else {
        out[0] = (y - h) * (y - h) / 2;
        out[1] = h;
        out[2] = 1;
    }
}

struct whole {
    double loss;
    double gradient[COLUMNS_MAX + 1];
    double hessian[(COLUMNS_MAX + 1) * (COLUMNS_MAX + 2) / 2];
};

static void sum_by_definition(
    enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef, struct whole *w)
{
    *w = (struct whole){0};
    uint32_t p = r->columns;
    for (uint64_t i = 0; i < r->rows; i++) {
        double row[COLUMNS_MAX + 1];
        double h = coef[p] + (r->offset ? r->offset[i] : 0);
        double weight = r->weights ? r->weights[i] : 1;
        double of[3];
        memcpy(row, r->x + i * p, p * sizeof *row);
        row[p] = 1;
        for (uint32_t j = 0; j < p; j++)
            h += row[j] * coef[j];
        by_definition(family, h, r->y[i], of);
        w->loss += weight * of[0];
        for (uint32_t j = 0; j <= p; j++) {
            w->gradient[j] += weight * (of[1] - r->y[i]) * row[j];
            for (uint32_t k = 0; k <= j; k++)
                w->hessian[mr_glm_packed(j) + k] += weight * of[2] * row[j] * row[k];
        }
    }
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void near(const double *got, const double *want, size_t n, double size)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= 1e-13 * size))
            fail_msg("number %zu is %.17g, not %.17g", i, got[i], want[i]);
}

/* However it is cut, each row is in one block. */
static void check_blocks(enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef,
    void *work, const struct whole *want)
{
    struct whole got;
    double size = 1 + (double)r->rows * 10;
    for (uint32_t blocks = 1; blocks <= 5; blocks += 2) {
        struct whole sum = {0};
        double loss = 0;
        for (uint32_t b = 0; b < blocks; b++) {
            struct mr_glm_sums s = {.gradient = got.gradient, .hessian = got.hessian};
            mr_glm_pass_block(family, r, blocks, b, coef, work, &s);
            loss += s.loss;
            for (uint32_t i = 0; i <= r->columns; i++)
                sum.gradient[i] += got.gradient[i];
            for (size_t i = 0; i < mr_glm_packed(r->columns + 1); i++)
                sum.hessian[i] += got.hessian[i];
        }
        near(&loss, &want->loss, 1, size);
        near(sum.gradient, want->gradient, r->columns + 1, size);
        near(sum.hessian, want->hessian, mr_glm_packed(r->columns + 1), size);
    }
}

static void check_pass(enum mr_glm_family family, uint32_t columns, uint64_t rows, bool more)
{
    static struct rows data;
    struct whole want;
    struct whole got;
    double coef[COLUMNS_MAX + 1];
    fill(&data, columns, rows, family);
    for (uint32_t j = 0; j <= columns; j++)
        coef[j] = 0.3 * (j % 3) - 0.2;
    /* of exactly the size that is read, so that a checker sees what is read beyond */
    double *x = mr_alloc(rows * columns * sizeof *x);
    memcpy(x, data.x, rows * columns * sizeof *x);
    struct mr_glm_rows r = {.x = x, .y = data.y, .rows = rows, .columns = columns};
    if (more) r.weights = data.weights;
    if (more) r.offset = data.offset;
    void *work = mr_alloc_aligned(mr_glm_work_bytes(columns, true), 64);
    struct mr_glm_sums s = {.gradient = got.gradient, .hessian = got.hessian};
    assert_true(mr_glm_pass(family, &r, coef, work, &s, never, NULL));
    sum_by_definition(family, &r, coef, &want);
    double size = 1 + (double)rows * 10;
    near(&s.loss, &want.loss, 1, size);
    near(got.gradient, want.gradient, columns + 1, size);
    near(got.hessian, want.hessian, mr_glm_packed(columns + 1), size);
    check_blocks(family, &r, coef, work, &want);
    s.hessian = NULL;
    double loss = s.loss;
    assert_true(mr_glm_pass(family, &r, coef, work, &s, never, NULL));
    assert_true(s.loss == loss);
    mr_release(work);
    mr_release(x);
}

static void a_pass_sums_what_each_row_gives_for_any_shape(void **state)
{
    (void)state;
    static const uint32_t columns[] = {1, 2, 3, 5, 7, 8, 9, 16, 20, 21};
    static const uint64_t rows[] = {1, 2, 7, 8, 9, 15, 16, 17, 64, 127, 128, 129, 300};
    for (int family = 0; family < MR_GLM_FAMILIES; family++)
        for (size_t i = 0; i < MR_ARRAY_LEN(columns); i++)
            for (size_t k = 0; k < MR_ARRAY_LEN(rows); k++)
                for (int more = 0; more < 2; more++)
                    check_pass((enum mr_glm_family)family, columns[i], rows[k], more);
}

static void blocks_follow_from_the_shape_and_their_sums_stay_small(void **state)
{
    (void)state;
    struct mr_glm_rows r = {.rows = 125000, .columns = 20};
    assert_in_range(mr_glm_blocks(&r, false), 30, 100); /* of 2 ms: tens of microseconds each */
    assert_true(mr_glm_blocks(&r, true) > mr_glm_blocks(&r, false));
    r.rows = 100;
    assert_int_equal(mr_glm_blocks(&r, true), 1);
    r = (struct mr_glm_rows){.rows = 1000000, .columns = 1024};
    assert_int_equal(mr_glm_blocks(&r, true), 1);
    assert_true(mr_glm_blocks(&r, false) > 1000 / 5);
    assert_true(mr_glm_blocks(&r, false) * 1026u <= 1u << 18);
}

static void predictions_of_extreme_rows_stay_probabilities(void **state)
{
    (void)state;
    const double x[] = {-1e6, -800, -1, 0, 1, 800, 1e6};
    const double coef[] = {1, 0};
    double eta[7];
    struct mr_glm_rows r = {.x = x, .rows = 7, .columns = 1};
    void *work = mr_alloc_aligned(mr_glm_work_bytes(1, false), 64);
    mr_glm_predict(MR_GLM_LOGISTIC, &r, coef, work, true, eta);
    for (int i = 0; i < 7; i++)
        assert_true(eta[i] >= 0 && eta[i] <= 1 && (i == 0 || eta[i] >= eta[i - 1]));
    assert_true(eta[3] == 0.5 && eta[6] == 1 && eta[0] < 1e-300);
    assert_true(ulps(eta[4], 1 / (1 + exp(-1))) <= 2);
    mr_release(work);
}

static void a_factor_solves_what_it_was_made_of(void **state)
{
    (void)state;
    /* scales apart by 1e12: columns are brought to one size first */
    double a[] = {4e12, 1e6, 3, 2e-3, 1e-9, 2e-12};
    double whole[3][3] = {{4e12, 1e6, 2e-3}, {1e6, 3, 1e-9}, {2e-3, 1e-9, 2e-12}};
    double b[3] = {0};
    double want[3] = {1e-6, 2, 3e6};
    double scale[3];
    double room[6];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            b[i] += whole[i][j] * want[j];
    mr_glm_cholesky(a, scale, 3, room);
    mr_glm_solve(a, scale, 3, b);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(b[i] / want[i] - 1) < 1e-9);
    double flat[] = {1, 1, 1, 0, 0, 0}; /* equal columns and an empty one: some answer, finite */
    double c[3] = {1, 1, 0};
    mr_glm_cholesky(flat, scale, 3, room);
    mr_glm_solve(flat, scale, 3, c);
    assert_true(isfinite(c[0]) && isfinite(c[1]) && isfinite(c[2]));
    assert_true(fabs(c[0] + c[1] - 1) < 1e-6);
}

/* ---- operators ---- */

struct value {
    struct mr_str pack;
    struct mr_str extent;
};

static struct value kept[8];
static unsigned kept_count;

/* The answer as JSON, or the error; kept as the input `$n` of later calls. Inputs are written in
 * the arguments as "$0" … "$7". */
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
    for (size_t i = 0; i + 2 < pack.n; i++) /* a text of two bytes becomes an input of two */
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

/* Runs a fit of one chunk to its end; its state is input 0 then. */
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

/* The numbers of the JSON list that follows `"name":`. */
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
#define LINE_Y "[1.0, 3.0, 5.5, 6.5]" /* slope 1.9, intercept 1.15, squares left over 0.45 */

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
    /* the second column is the first but for a thousandth; y is exact */
    const char *x = "[[1.0, 1.001], [2.0, 2.0], [3.0, 2.999], [4.0, 4.001], [5.0, 5.0]]";
    const char *y = "[5.002, 8.0, 10.998, 14.002, 17.0]"; /* 1 and 2, and 2 */
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
    /* columns at right angles, of mean square 1: the coefficient is shrunk by alpha, or is 0 */
    const char *x = "[[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]";
    const char *y = "[3.0, 2.5, -2.5, -3.0]"; /* 2.75 and 0.25 without */
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
    (void)answer("glm.part", "[[[1.0]], [0], \"$0\", 0, null, null, null, [1, 1]]"); /* none */
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
    /* nobody has answered yet: the state is as it is */
    (void)snprintf(told, sizeof told, "%s", answer("glm.part", "[[[1.0], [2.0]], [0, 1], \"$0\"]"));
    forget(4);
    assert_string_equal(
        told, answer("glm.part", "[[[1.0], [2.0]], [0, 1], \"$0\", 0, null, null, [null, null]]"));
    forget(4);
    assert_string_equal(answer("glm.step", "[\"$3\", null, null]"), "input 3"); /* as it is */
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
        "glm.part", "[[[1.0], [2.0]], [0, 0.5], \"$0\", 0, [1, 1]]", "["); /* shares with weights */
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
        cmocka_unit_test(the_exponential_is_exact_to_two_units_in_the_last_place),
        cmocka_unit_test(the_logarithm_is_exact_to_three_units_in_the_last_place),
        cmocka_unit_test(a_pass_sums_what_each_row_gives_for_any_shape),
        cmocka_unit_test(blocks_follow_from_the_shape_and_their_sums_stay_small),
        cmocka_unit_test(predictions_of_extreme_rows_stay_probabilities),
        cmocka_unit_test(a_factor_solves_what_it_was_made_of),
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
