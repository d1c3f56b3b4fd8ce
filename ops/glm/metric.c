/* The metric M of a fit (metric.h) and the proximal operator in this metric, which has no closed
 * form. Coordinate descent and feature-sign search (Lee, Battle, Raina and Ng 2007) alternate until
 * coordinate descent finds no more progress. With weakly correlated columns, coordinate descent
 * alone finds the solution. With strongly correlated columns, it finds which coefficients are 0.
 * Feature-sign search then keeps these zeros and solves one linear system for the other
 * coefficients. It moves them towards the solution, up to the first change of a sign. */
#include "ops/glm/metric.h"

#include "ops/glm/solve.h"

#include <math.h>
#include <string.h>

/* Passes of coordinate descent before a linear system is solved. */
#define SWEEPS 25
#define TURNS 20 /* the two methods alternate at most this many times */
/* For n coefficients, one call solves at most SYSTEMS + SYSTEMS_WORK / n^3 linear systems, rounded
 * up, and never more than SYSTEMS + 1000. SYSTEMS_WORK / n^3 systems take about a second. */
#define SYSTEMS 20
#define SYSTEMS_WORK 1e10
#define RIDGE_MIN 1e-12 /* the smallest ridge that is added to M, relative to a diagonal of 1 */
/* A coordinate whose relative change is smaller has converged. */
#define STILL 1e-14

/* ---- the metric ---- */

/* True: g->metric is stored as the Cholesky factor of M. False: g->metric is M itself. */
static bool is_factor(const struct mr_glm *g)
{
    return g->solver != MR_GLM_ADMM && g->h->l1 == 0;
}

size_t mr_glm_metric_numbers(uint32_t columns)
{
    size_t n = (size_t)columns + 1;
    return 5 * n + 2 * mr_glm_packed((uint32_t)n);
}

void mr_glm_metric_take(struct mr_glm *g, const double *hessian, double *room)
{
    uint32_t n = g->columns + 1;
    double *scale = room;
    memcpy(g->metric, hessian, mr_glm_packed(n) * sizeof *g->metric);
    double ridge = mr_glm_cholesky(g->metric, scale, n, room + n);
    /* If M itself is stored, and not its factor, the diagonal of M gets the ridge that the factor
     * needed. Otherwise rounding could make a squared length d^T M d negative. */
    if (!is_factor(g)) {
        memcpy(g->metric, hessian, mr_glm_packed(n) * sizeof *g->metric);
        for (uint32_t i = 0; i < n; i++)
            g->metric[mr_glm_packed(i) + i] *= 1 + fmax(ridge, RIDGE_MIN);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++)
            g->metric[mr_glm_packed(i) + j] /= scale[i];
}

void mr_glm_metric_add(const double *metric, uint32_t n, double by, const double *x, double *c)
{
    for (uint32_t i = 0; i < n; i++) {
        const double *row = metric + mr_glm_packed(i);
        double sum = row[i] * x[i];
        for (uint32_t j = 0; j < i; j++) {
            sum += row[j] * x[j];
            c[j] += by * row[j] * x[i];
        }
        c[i] += by * sum;
    }
}

double mr_glm_metric_square(const struct mr_glm *g, const double *d, double *room)
{
    uint32_t n = g->columns + 1;
    double sum = 0;
    if (!g->metric) {
        for (uint32_t j = 0; j < n; j++)
            sum += d[j] * d[j];
        return sum;
    }
    memset(room, 0, n * sizeof *room);
    if (!is_factor(g)) {
        mr_glm_metric_add(g->metric, n, 1, d, room);
        for (uint32_t j = 0; j < n; j++)
            sum += room[j] * d[j];
        return sum;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++)
            room[j] += g->metric[mr_glm_packed(i) + j] * d[i];
    for (uint32_t j = 0; j < n; j++)
        sum += room[j] * room[j];
    return sum;
}

void mr_glm_metric_solve(const struct mr_glm *g, double *d)
{
    mr_glm_solve(g->metric, NULL, g->columns + 1, d);
}

/* ---- the proximal operator ---- */

struct search {
    const struct mr_glm_prox *p;
    double *x;
    double *r;     /* c - (M + l2) x */
    double *y;     /* solution of the linear system */
    double *scale; /* factors by which mr_glm_cholesky scales the columns of `a` */
    /* The Cholesky factor of M + l2, for the columns whose coefficient is not 0 or has no L1
     * penalty. */
    double *a;
    double *room;
};

static double quadratic(const struct mr_glm_prox *p, uint32_t i, uint32_t j)
{
    double m = i >= j ? p->metric[mr_glm_packed(i) + j] : p->metric[mr_glm_packed(j) + i];
    return i == j && i + 1 < p->n ? m + p->l2 : m;
}

static void residual(struct search *s)
{
    const struct mr_glm_prox *p = s->p;
    memcpy(s->r, p->c, p->n * sizeof *s->r);
    mr_glm_metric_add(p->metric, p->n, -1, s->x, s->r);
    for (uint32_t j = 0; j + 1 < p->n; j++)
        s->r[j] -= p->l2 * s->x[j];
}

/* Minimises over coordinate x[j] alone. Returns 0 if x[j] stays. Otherwise returns the size of the
 * change of the residual r[j], relative to a sum of three sizes: r[j] at x[j] = 0 (`pull`), the L1
 * penalty, and c[j]. */
static double settle(struct search *s, uint32_t j)
{
    const struct mr_glm_prox *p = s->p;
    double a = quadratic(p, j, j);
    double by = j + 1 < p->n ? p->l1 : 0;
    double pull = s->r[j] + a * s->x[j];
    if (!(a > 0)) return 0; /* the column has only zeros */
    double to = (pull > by ? pull - by : pull < -by ? pull + by : 0) / a;
    double moved = to - s->x[j];
    if (moved == 0) return 0;
    for (uint32_t k = 0; k < p->n; k++)
        s->r[k] -= moved * quadratic(p, k, j);
    s->x[j] = to;
    return fabs(moved) * a / (fabs(pull) + by + fabs(p->c[j]));
}

/* Solves for all nonzero coordinates with their signs fixed. True: `x` is the solution. False: a
 * coordinate would change its sign; `x` has moved towards the solution up to the first such change,
 * and that coordinate is now 0. */
static bool solve_signs(struct search *s)
{
    const struct mr_glm_prox *p = s->p;
    uint32_t n = 0;
    double *at = s->a;
    for (uint32_t i = 0; i < p->n; i++) {
        bool free = i + 1 == p->n || p->l1 == 0;
        if (!free && s->x[i] == 0) continue;
        for (uint32_t j = 0; j <= i; j++)
            if (j == i || p->l1 == 0 || s->x[j] != 0) *at++ = quadratic(p, i, j);
        s->y[n++] = p->c[i] - (free ? 0 : copysign(p->l1, s->x[i]));
    }
    mr_glm_cholesky(s->a, s->scale, n, s->room);
    mr_glm_solve(s->a, s->scale, n, s->y);
    double way = 1;
    uint32_t first = p->n;
    for (uint32_t i = 0, k = 0; i < p->n; i++) {
        bool free = i + 1 == p->n || p->l1 == 0;
        if (!free && s->x[i] == 0) continue;
        double to = s->y[k++];
        if (free || to * s->x[i] > 0 || !(s->x[i] / (s->x[i] - to) < way)) continue;
        way = s->x[i] / (s->x[i] - to);
        first = i;
    }
    for (uint32_t i = 0, k = 0; i < p->n; i++)
        if (i + 1 == p->n || p->l1 == 0 || s->x[i] != 0) {
            s->x[i] = way == 1 ? s->y[k] : s->x[i] + way * (s->y[k] - s->x[i]);
            k++;
        }
    if (first < p->n) s->x[first] = 0;
    return first == p->n;
}

void mr_glm_metric_prox(const struct mr_glm_prox *p, double *x, double *room)
{
    uint32_t n = p->n;
    struct search s = {.p = p, .x = x, .r = room, .y = room + n, .scale = room + 2 * n};
    s.a = room + 3 * n;
    s.room = s.a + mr_glm_packed(n);
    double left = SYSTEMS + fmin(SYSTEMS_WORK / ((double)n * n * n), 1000);
    for (unsigned turn = 0; turn < TURNS && left > 0; turn++) {
        residual(&s);
        for (unsigned sweep = 0; sweep < SWEEPS && p->l1 > 0; sweep++) {
            double most = 0;
            for (uint32_t j = 0; j < n; j++)
                most = fmax(most, settle(&s, j));
            if (most <= STILL) return;
        }
        bool agreed = false;
        for (; !agreed && left > 0; left -= 1)
            agreed = solve_signs(&s);
        if (p->l1 == 0) return;
    }
}
