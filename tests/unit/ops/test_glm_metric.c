/* ops/glm/metric: the metric of a preconditioned fit, a symmetric matrix M. The squared length
 * d^T M d and the solution x of M x = c are checked with products of M and a vector. Results of the
 * proximal operator must fulfil the conditions that hold at a minimum. */
#include "base/alloc.h"
#include "ops/glm/metric.h"
#include "ops/glm/solve.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_MAX 30u

static double noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0 * 2 - 1;
}

/* Fills `packed` with the Gram matrix of correlated columns: the larger `common`, the more they
 * correlate. */
static void fill(double *packed, uint32_t n, double common, uint64_t seed)
{
    double rows[2 * N_MAX][N_MAX];
    for (uint32_t i = 0; i < 2 * n; i++) {
        double all = common * noise(&seed);
        for (uint32_t j = 0; j < n; j++)
            rows[i][j] = all + noise(&seed);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++) {
            double sum = 0;
            for (uint32_t k = 0; k < 2 * n; k++)
                sum += rows[k][i] * rows[k][j];
            packed[mr_glm_packed(i) + j] = sum / (2 * n);
        }
}

/* Returns how far `x` is from fulfilling the conditions of a minimum of the problem `p`; 0: `x` is
 * a minimum. */
static double from_least(const struct mr_glm_prox *p, const double *x)
{
    double r[N_MAX];
    double most = 0;
    memcpy(r, p->c, p->n * sizeof *r);
    mr_glm_metric_add(p->metric, p->n, -1, x, r);
    for (uint32_t j = 0; j < p->n; j++) {
        bool last = j + 1 == p->n;
        double pull = r[j] - (last ? 0 : p->l2 * x[j]);
        double l1 = last ? 0 : p->l1;
        double off =
            x[j] == 0 && !last ? fmax(fabs(pull) - l1, 0) : fabs(pull - copysign(l1, x[j]));
        most = fmax(most, off);
    }
    return most;
}

static void the_proximal_operator_ends_at_the_least(void **state)
{
    (void)state;
    static const double commons[] = {0, 3, 100, 10000};
    uint32_t zeroes = 0;
    for (uint32_t n = 2; n <= N_MAX; n += 4)
        for (unsigned k = 0; k < MR_ARRAY_LEN(commons); k++)
            for (unsigned penalty = 0; penalty < 4; penalty++) {
                double m[N_MAX * (N_MAX + 1) / 2];
                double c[N_MAX];
                double x[N_MAX] = {0};
                uint64_t seed = n * 100 + k;
                fill(m, n, commons[k], seed);
                for (uint32_t j = 0; j < n; j++)
                    c[j] = noise(&seed) + commons[k] / 3;
                struct mr_glm_prox p = {.metric = m, .c = c, .n = n};
                p.l1 = penalty & 1 ? 0.3 : 0;
                p.l2 = penalty & 2 ? 0.2 : 0;
                double *room = mr_alloc(mr_glm_metric_numbers(n - 1) * sizeof *room);
                mr_glm_metric_prox(&p, x, room);
                mr_release(room);
                double far = from_least(&p, x);
                if (!(far < 1e-9 * (1 + commons[k])))
                    fail_msg("n %u, common %g, penalty %u: %g", n, commons[k], penalty, far);
                for (uint32_t j = 0; j + 1 < n; j++)
                    zeroes += x[j] == 0;
            }
    assert_true(zeroes > 50);
}

static void collinear_columns_and_empty_ones_leave_the_operator_finite(void **state)
{
    (void)state;
    /* The second column equals the first; the third is empty. */
    const double m[] = {1, 1, 1, 0, 0, 0, 0.5, 0.5, 0, 1};
    const double c[] = {2, 2, 0, 1};
    double room[5 * 4 + 2 * 10];
    for (unsigned penalty = 0; penalty < 2; penalty++) {
        double x[] = {0, 0, 0, 0};
        struct mr_glm_prox p = {.metric = m, .c = c, .l1 = penalty ? 0.5 : 0, .n = 4};
        mr_glm_metric_prox(&p, x, room);
        for (int j = 0; j < 4; j++)
            assert_true(isfinite(x[j]));
        assert_true(from_least(&p, x) < 1e-9);
        assert_true(x[2] == 0);
    }
}

/* Returns the numbers of a state with the metric `m`. The caller owns the numbers, and `g` points
 * into them. */
static double *state_with(
    const double *m, uint32_t columns, enum mr_glm_solver solver, double l1, struct mr_glm *g)
{
    struct mr_glm_head h = {.solver = solver, .memory = 1, .columns = columns, .metric = 1};
    h.l1 = l1;
    double *numbers = mr_alloc(mr_glm_numbers(&h) * sizeof *numbers);
    double *room = mr_alloc(mr_glm_metric_numbers(columns) * sizeof *room);
    mr_glm_copy(NULL, &h, numbers, g);
    mr_glm_metric_take(g, m, room);
    mr_release(room);
    return numbers;
}

static void lengths_and_solutions_are_those_of_the_matrix(void **state)
{
    (void)state;
    enum { n = 7 };
    double m[n * (n + 1) / 2];
    double room[2 * n];
    double d[n];
    uint64_t seed = 9;
    fill(m, n, 10, seed);
    for (uint32_t j = 0; j < n; j++)
        d[j] = noise(&seed);
    double seen[n] = {0};
    double want = 0;
    mr_glm_metric_add(m, n, 1, d, seen);
    for (uint32_t j = 0; j < n; j++)
        want += d[j] * seen[j];
    /* In form 0 the state keeps the Cholesky factor of the metric; in forms 1 and 2 it keeps the
     * matrix. */
    for (int form = 0; form < 3; form++) {
        struct mr_glm g;
        double *numbers =
            state_with(m, n - 1, form == 2 ? MR_GLM_ADMM : MR_GLM_PROXIMAL, form == 1, &g);
        assert_true(fabs(mr_glm_metric_square(&g, d, room) / want - 1) < 1e-10);
        if (form == 0) mr_glm_metric_solve(&g, seen);
        mr_release(numbers);
    }
    for (uint32_t j = 0; j < n; j++)
        assert_true(fabs(seen[j] - d[j]) < 1e-11);
    struct mr_glm none = {.columns = 1};
    assert_true(mr_glm_metric_square(&none, (const double[]){3, 4}, room) == 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_proximal_operator_ends_at_the_least),
        cmocka_unit_test(collinear_columns_and_empty_ones_leave_the_operator_finite),
        cmocka_unit_test(lengths_and_solutions_are_those_of_the_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
