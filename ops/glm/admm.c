/* Consensus ADMM (Boyd, Parikh, Chu, Peleato and Eckstein 2011, chapters 7 and 8). Each chunk of
 * rows has coefficients x of its own, which are pulled towards common coefficients z; penalties act
 * on z alone. A chunk minimises its own problem by a few Newton steps from z, so its first
 * evaluation gives the loss at z. With a metric M (ops/glm/metric.h), the distance of x and z and
 * the residuals are measured in M. The iterations then converge as if the columns were not
 * correlated. */
#include "ops/glm/admm.h"

#include "ops/glm/metric.h"
#include "ops/glm/solve.h"

#include <math.h>
#include <string.h>

#define LOCAL_PASSES 30
/* Accuracy of a chunk's own solution, as a multiple of the fit's tol. */
#define LOCAL_TOL 0.05
/* Rounding error of the objective, relative to the objective. */
#define SLACK 1e-13
/* Change of the objective that rounding may hide, relative to the objective. */
#define NOISE 1e-10
/* Where rounding hides the change of the objective, a trial is better if its directional derivative
 * is below this share of the derivative at the best point. */
#define FLATTER 0.9
/* A chunk is stuck if no trial is better than z although Newton's first step is longer than this
 * multiple of tol. */
#define STUCK_TOL 100.0
#define RELAXATION 1.6
/* If the residuals differ by this factor or more, rho changes. rho is the weight of the quadratic
 * term in a chunk's problem (admm.h). */
#define BALANCE 2.0
/* One change multiplies or divides rho by at most this factor. */
#define BALANCE_MAX 10.0
#define BALANCE_EVERY 3 /* rho changes at most once in this many iterations */
/* After this many iterations rho stays constant, which convergence needs. */
#define BALANCED_AFTER 100

size_t mr_glm_local_numbers(uint32_t columns)
{
    size_t n = (size_t)columns + 1;
    return 8 * n + 2 * mr_glm_packed((uint32_t)n);
}

struct local {
    double *raw;
    double *gradient;
    double *direction;
    double *scale;
    double *trial;
    double *target; /* z - u */
    double *away;   /* x - target, followed by M times this vector */
    double best;    /* objective at the best x so far */
    double slope;   /* derivative of the objective along `direction` at the best x so far */
    double wrong;   /* rows in the wrong class at the last evaluation */
    double *hessian;
    double *room;
};

static void lay_out(struct local *l, double *room, uint32_t n)
{
    l->raw = room;
    l->gradient = room + n;
    l->direction = room + 2 * n;
    l->scale = room + 3 * n;
    l->trial = room + 4 * n;
    l->target = room + 5 * n;
    l->away = room + 6 * n;
    l->hessian = room + 8 * n;
    l->room = l->hessian + mr_glm_packed(n);
}

/* Returns the quadratic term rho / 2 |x - target|^2, and adds its gradient and its Hessian to those
 * of `l`. */
static double draw(const struct mr_glm *g, struct local *l, const double *x)
{
    uint32_t n = g->columns + 1;
    double rho = g->h->step;
    double *d = l->away;
    double *seen = g->metric ? l->away + n : d;
    double far = 0;
    for (uint32_t j = 0; j < n; j++)
        d[j] = x[j] - l->target[j];
    if (g->metric) {
        memset(seen, 0, n * sizeof *seen);
        mr_glm_metric_add(g->metric, n, 1, d, seen);
    }
    for (uint32_t j = 0; j < n; j++) {
        far += d[j] * seen[j];
        l->gradient[j] += rho * seen[j];
        if (!g->metric) l->hessian[mr_glm_packed(j) + j] += rho;
    }
    for (size_t i = 0; g->metric && i < mr_glm_packed(n); i++)
        l->hessian[i] += rho * g->metric[i];
    return 0.5 * rho * far;
}

/* Computes the objective of the chunk at `x`, and writes gradient and Hessian to `l`. False: the
 * task is cancelled. */
static bool evaluate(const struct mr_glm *g, const struct mr_glm_rows *rows, struct local *l,
    const double *x, void *work, double *loss, double *objective, bool (*is_cancelled)(void *),
    void *ctx)
{
    struct mr_glm_sums s = {.gradient = l->gradient, .hessian = l->hessian};
    mr_glm_raw(g, x, l->raw);
    if (!mr_glm_pass(g->family, rows, l->raw, work, &s, is_cancelled, ctx)) return false;
    mr_glm_units(g, l->gradient, l->hessian);
    *loss = s.loss;
    l->wrong = s.wrong;
    *objective = s.loss / g->h->weight + draw(g, l, x);
    return true;
}

/* Computes Newton's direction from the last evaluated point. Returns the length of the direction:
 * its largest component, or with a metric its length in M relative to the length of `x`. */
static double direct(const struct mr_glm *g, struct local *l, const double *x)
{
    uint32_t n = g->columns + 1;
    double far = 0;
    mr_glm_cholesky(l->hessian, l->scale, n, l->room);
    for (uint32_t j = 0; j < n; j++)
        l->direction[j] = -l->gradient[j];
    mr_glm_solve(l->hessian, l->scale, n, l->direction);
    for (uint32_t j = 0; j < n; j++)
        far = fmax(far, fabs(l->direction[j]));
    if (!g->metric) return far;
    double size = mr_glm_metric_square(g, x, l->away);
    return sqrt(mr_glm_metric_square(g, l->direction, l->away) / fmax(1, size));
}

/* Returns the directional derivative of the objective at the point that was evaluated last. */
static double along(const struct local *l, uint32_t n)
{
    double sum = 0;
    for (uint32_t j = 0; j < n; j++)
        sum += l->gradient[j] * l->direction[j];
    return sum;
}

/* True: the trial, which was evaluated last, is better than the best point. Where rounding hides
 * the change of the objective, the directional derivative decides (Hager and Zhang 2005). */
static bool is_better(const struct local *l, uint32_t n, double length, double objective)
{
    double noise = NOISE * fabs(l->best);
    if (objective <= l->best + SLACK * fabs(l->best)) return true;
    if (-l->slope * length > noise || !(objective <= l->best + noise)) return false;
    return fabs(along(l, n)) < FLATTER * fabs(l->slope);
}

bool mr_glm_local(const struct mr_glm *g, const struct mr_glm_rows *rows, const double *u,
    void *work, double *room, struct mr_glm_found *found, bool (*is_cancelled)(void *ctx),
    void *ctx)
{
    uint32_t n = g->columns + 1;
    struct local l;
    double *point = found->point;
    lay_out(&l, room, n);
    for (uint32_t j = 0; j < n; j++)
        l.target[j] = g->w[j] - u[j];
    memcpy(point, g->w, n * sizeof *point);
    double ignored = 0;
    if (!evaluate(g, rows, &l, point, work, &found->loss, &l.best, is_cancelled, ctx)) return false;
    found->wrong = l.wrong;
    /* If the objective overflows at z, the search starts from 0. */
    if (!isfinite(l.best)) {
        memset(point, 0, n * sizeof *point);
        if (!evaluate(g, rows, &l, point, work, &ignored, &l.best, is_cancelled, ctx)) return false;
    }
    double far = direct(g, &l, point);
    l.slope = along(&l, n);
    double length = 1;
    found->stuck = !(far <= STUCK_TOL * g->h->tol);
    for (unsigned pass = 1; pass < LOCAL_PASSES && far > LOCAL_TOL * g->h->tol; pass++) {
        double objective = 0;
        for (uint32_t j = 0; j < n; j++)
            l.trial[j] = point[j] + length * l.direction[j];
        if (!evaluate(g, rows, &l, l.trial, work, &ignored, &objective, is_cancelled, ctx))
            return false;
        /* If the trial is not better, the next pass tries half the step. */
        if (!is_better(&l, n, length, objective)) {
            length *= 0.5;
            continue;
        }
        memcpy(point, l.trial, n * sizeof *point);
        found->stuck = false;
        l.best = objective;
        length = 1;
        far = direct(g, &l, point);
        l.slope = along(&l, n);
    }
    return true;
}

/* ---- the common step ---- */

static int check_chunks(const struct mr_glm *g, const struct mr_glm_partial *p, struct mr_error *e)
{
    size_t pitch = (size_t)g->columns + 2;
    if (!p->points || p->entries != g->chunks)
        return mr_fail(e, MR_EINVAL, "%u chunks began the fit, %u go on", g->chunks, p->entries);
    for (uint32_t i = 0; i < p->entries; i++) {
        double chunk = p->points[i * pitch];
        if (!(chunk >= 0 && chunk < g->chunks && chunk == floor(chunk)))
            return mr_fail(e, MR_EINVAL,
                "there are %u chunks, and one says it is number %g: give each glm.part its "
                "\"chunk\", from 0",
                g->chunks, chunk);
        for (uint32_t k = 0; k < i; k++)
            if (p->points[k * pitch] == chunk)
                return mr_fail(e, MR_EINVAL,
                    "two chunks say they are number %g: give each glm.part its \"chunk\", from 0",
                    chunk);
    }
    return MR_OK;
}

/* Applies the proximal operator of the penalty to g->trial, which has the mean of x + u over the
 * chunks. The search starts from g->w, the last common coefficients. */
static void agree_by_metric(struct mr_glm *g, double weight, double *room)
{
    uint32_t n = g->columns + 1;
    double *c = room;
    memset(c, 0, n * sizeof *c);
    mr_glm_metric_add(g->metric, n, 1, g->trial, c);
    struct mr_glm_prox p = {
        .metric = g->metric, .c = c, .l1 = g->h->l1 / weight, .l2 = g->h->l2 / weight, .n = n};
    memcpy(g->trial, g->w, n * sizeof *g->w);
    mr_glm_metric_prox(&p, g->trial, room + n);
}

/* Computes the common coefficients from those of the chunks, with over-relaxation (Boyd et al.
 * 2011, section 3.4.3). */
static void agree(struct mr_glm *g, struct mr_glm_partial *p, double *room)
{
    uint32_t n = g->columns + 1;
    double weight = g->chunks * g->h->step;
    memset(g->trial, 0, n * sizeof *g->trial);
    for (uint32_t i = 0; i < p->entries; i++) {
        double *x = p->points + (size_t)i * (n + 1) + 1;
        const double *u = g->u + (size_t)x[-1] * n;
        for (uint32_t j = 0; j < n; j++) {
            x[j] = RELAXATION * x[j] + (1 - RELAXATION) * g->w[j];
            g->trial[j] += (x[j] + u[j]) / g->chunks;
        }
    }
    if (g->metric) {
        if (g->h->l1 > 0 || g->h->l2 > 0) agree_by_metric(g, weight, room);
        return;
    }
    for (uint32_t j = 0; j < g->columns; j++) {
        double v = g->trial[j];
        double by = g->h->l1 / weight;
        v = v > by ? v - by : v < -by ? v + by : 0;
        g->trial[j] = v / (1 + g->h->l2 / weight);
    }
}

struct residuals {
    double primal;
    double dual;
    double primal_max;
    double dual_max;
};

/* Updates the duals u. Returns the primal and the dual residual and their bounds. */
static struct residuals settle(struct mr_glm *g, const struct mr_glm_partial *p, double *room)
{
    uint32_t n = g->columns + 1;
    double apart = 0, xs = 0, us = 0;
    double *d = room + n;
    for (uint32_t i = 0; i < p->entries; i++) {
        const double *x = p->points + (size_t)i * (n + 1) + 1;
        double *u = g->u + (size_t)x[-1] * n;
        for (uint32_t j = 0; j < n; j++) {
            d[j] = x[j] - g->trial[j];
            u[j] += d[j];
        }
        apart += mr_glm_metric_square(g, d, room);
        xs += mr_glm_metric_square(g, x, room);
        us += mr_glm_metric_square(g, u, room);
    }
    for (uint32_t j = 0; j < n; j++)
        d[j] = g->trial[j] - g->w[j];
    double moved = mr_glm_metric_square(g, d, room);
    double zs = mr_glm_metric_square(g, g->trial, room);
    double rho = g->h->step;
    double floor_of = g->h->tol * sqrt((double)g->chunks * n);
    return (struct residuals){.primal = sqrt(apart),
        .dual = rho * sqrt(g->chunks * moved),
        .primal_max = floor_of + g->h->tol * sqrt(fmax(xs, g->chunks * zs)),
        .dual_max = rho * floor_of + g->h->tol * rho * sqrt(us)};
}

/* Changes rho so that the two residuals become alike (He, Yang and Wang 2000). With a metric, the
 * change depends on the ratio of the residuals. Without a metric, rho has units, so the change
 * depends on the geometric mean of two ratios: that of the residuals, and that of the relative
 * residuals (Wohlberg 2017). */
static void balance(struct mr_glm *g, const struct residuals *r)
{
    double apart = r->primal / r->dual;
    if (!g->metric) apart *= sqrt(r->dual_max / r->primal_max);
    if (!isfinite(apart) || (apart < BALANCE && apart > 1 / BALANCE)) return;
    if (g->h->iterations > BALANCED_AFTER || fmod(g->h->iterations, BALANCE_EVERY) != 0) return;
    double by = fmin(fmax(sqrt(apart), 1 / BALANCE_MAX), BALANCE_MAX);
    g->h->step *= by;
    for (size_t i = 0; i < (size_t)g->chunks * (g->columns + 1); i++)
        g->u[i] /= by;
}

int mr_glm_admm_step(struct mr_glm *g, struct mr_glm_partial *p, double *room, struct mr_error *e)
{
    struct mr_glm_head *h = g->h;
    int err = check_chunks(g, p, e);
    if (err) return err;
    double size = 0;
    double sum = 0;
    for (uint32_t j = 0; j < g->columns; j++) {
        size += fabs(g->w[j]);
        sum += g->w[j] * g->w[j];
    }
    h->fit = p->h->loss;
    h->wrong = p->h->wrong;
    h->objective = h->fit / h->weight + h->l1 * size + 0.5 * h->l2 * sum;
    h->evaluations += 1;
    h->iterations += 1;
    if (mr_glm_is_separated(g)) {
        h->status = MR_GLM_SEPARATED;
        return MR_OK;
    }
    agree(g, p, room);
    struct residuals r = settle(g, p, room);
    memcpy(g->w, g->trial, (g->columns + 1) * sizeof *g->w);
    h->criterion = h->tol * fmax(r.primal / r.primal_max, r.dual / r.dual_max);
    balance(g, &r);
    bool met = r.primal <= r.primal_max && r.dual <= r.dual_max;
    if (met && isfinite(h->objective))
        h->status = p->h->stuck > 0 ? MR_GLM_STALLED : MR_GLM_CONVERGED;
    else if (h->iterations_max > 0 && h->iterations >= h->iterations_max)
        h->status = MR_GLM_ITERATIONS;
    return MR_OK;
}
