/* Numerical parts of the fits of generalized linear models: the approximations of exp and log
 * compared with the C library, a pass over rows compared with plain sums, and the Cholesky
 * factor. */
#include "base/alloc.h"
#include "ops/glm/exp_log.h"
#include "ops/glm/kernel.h"
#include "ops/glm/solve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- numbers ---- */

/* Returns the distance of `got` from `want` in units in the last place. */
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

/* Computes loss, mean and variance of a row by their definitions, into `out`. */
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

/* Splits the rows into 1, 3 and 5 blocks. Checks that the sums of the blocks add up to the sums of
 * all rows. */
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
    /* The copy has exactly the size that the pass reads, so that the sanitizer notices a read
     * beyond it. */
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
    /* A pass takes about 2 ms. With 30 to 100 blocks, a block takes tens of microseconds. */
    assert_in_range(mr_glm_blocks(&r, false), 30, 100);
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
    /* The scales of the columns differ by a factor of 1e12: the factorization first scales all
     * columns to one size. */
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
    /* Two equal columns and an empty one: the solution need not be unique, but must be finite. */
    double flat[] = {1, 1, 1, 0, 0, 0};
    double c[3] = {1, 1, 0};
    mr_glm_cholesky(flat, scale, 3, room);
    mr_glm_solve(flat, scale, 3, c);
    assert_true(isfinite(c[0]) && isfinite(c[1]) && isfinite(c[2]));
    assert_true(fabs(c[0] + c[1] - 1) < 1e-6);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
