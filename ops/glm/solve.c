/* Steps of the solvers that use gradients of the whole model. Each solver receives loss and
 * gradient at its trial point, accepts the point or halves the step, and chooses the next trial
 * point. So each evaluation takes one pass over the data and one barrier. A fit may have a metric:
 * a matrix M, made from the first Hessian, by which lengths are measured (ops/glm/metric.h).
 *
 * - gd and proximal use the step length of Barzilai and Borwein (1988). A point is accepted if its
 * objective is sufficiently below the largest of the last ten objectives (Grippo, Lampariello and
 * Lucidi 1986). The proximal operator is that of SpaRSA (Wright, Nowak and Figueiredo 2009).
 * - newton uses a Cholesky factor of the Hessian. It tries the full step first, and halves the step
 * until Armijo's rule holds.
 * - lbfgs uses the two-loop recursion (Nocedal 1980) with the line search of newton.
 *
 * With a metric M, gd moves along M^-1 gradient, proximal uses the proximal operator in M (proximal
 * Newton: Becker and Fadili 2012; Lee, Sun and Saunders 2014), and lbfgs starts from M. */
#include "ops/glm/solve.h"

#include "ops/glm/admm.h"
#include "ops/glm/metric.h"

#include <math.h>
#include <string.h>

#define LOG2 0.69314718 /* loss of a logistic row at eta = 0 */
#define ARMIJO 1e-4
/* Bound on the rounding error of the objective, relative to the objective. */
#define SLACK 1e-14
/* Like SLACK, but for columns whose means are far from 0. */
#define NOISE 1e-10
/* Used where rounding hides the change of the objective. A step is accepted if the directional
 * derivative at its end is below this share of the directional derivative at its start. */
#define FLATTER 0.9
#define REJECTED_MAX 60u /* limit of rejected trial points in a row; one more ends the fit */
#define CURVATURE_MIN 1e-12
#define PIVOT_MIN 1e-14
#define LOSS_MIN 1e-4
#define GROWTH_MIN 0.01
#define LENGTH_MAX 1e12 /* the longest step */
#define METRIC_LENGTH_MAX 1e30

bool mr_glm_is_local(const struct mr_glm *g)
{
    return g->solver == MR_GLM_ADMM && g->h->evaluations > 0;
}

bool mr_glm_wants_hessian(const struct mr_glm *g)
{
    return g->solver == MR_GLM_NEWTON || (g->h->metric != 0 && g->h->evaluations == 0);
}

bool mr_glm_is_separated(const struct mr_glm *g)
{
    const struct mr_glm_head *h = g->h;
    if (g->family != MR_GLM_LOGISTIC || h->l1 > 0 || h->l2 > 0) return false;
    if (!(h->least > 0) || h->saturated != 0) return false;
    /* The loss includes the offsets, so an offset may hide that X w + b puts its row in the wrong
     * class. So `wrong`, which ignores offsets, decides, and not the loss. If the loss is almost 0
     * with the offsets, the data do not determine the coefficients. */
    if (h->offset != 0) return h->wrong == 0 || h->fit <= h->tol * h->weight;
    /* A row in the wrong class, or with eta = 0, costs at least its weight times log 2. */
    return h->fit < h->least * LOG2;
}

double mr_glm_wrong(
    const struct mr_glm *g, const struct mr_glm_rows *r, double loss, double counted)
{
    if (r->offset) return counted > 0;
    return r->rows && !(loss < g->h->least * LOG2);
}

static double dot(const double *a, const double *b, uint32_t n)
{
    double s = 0;
    for (uint32_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

static double largest(const double *a, uint32_t n)
{
    double m = 0;
    for (uint32_t i = 0; i < n; i++)
        m = fmax(m, fabs(a[i]));
    return m;
}

/* ---- Cholesky ---- */

/* Replaces a matrix by its Cholesky factor. False: the matrix is not positive definite. */
static bool factor(double *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        double *row = a + mr_glm_packed(i);
        for (uint32_t j = 0; j <= i; j++) {
            double *other = a + mr_glm_packed(j);
            double v = row[j] - dot(row, other, j);
            if (j < i) {
                row[j] = v / other[j];
            } else {
                if (!(v > PIVOT_MIN)) return false;
                row[i] = sqrt(v);
            }
        }
    }
    return true;
}

double mr_glm_cholesky(double *a, double *scale, uint32_t n, double *room)
{
    for (uint32_t i = 0; i < n; i++) {
        double d = a[mr_glm_packed(i) + i];
        scale[i] = d > 0 && isfinite(d) ? 1 / sqrt(d) : 1;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j <= i; j++)
            a[mr_glm_packed(i) + j] *= scale[i] * scale[j];
    memcpy(room, a, mr_glm_packed(n) * sizeof *a);
    double ridge = 0;
    while (!factor(a, n) && ridge < 1e6) {
        ridge = ridge > 0 ? 10 * ridge : 1e-13;
        memcpy(a, room, mr_glm_packed(n) * sizeof *a);
        for (uint32_t i = 0; i < n; i++)
            a[mr_glm_packed(i) + i] += ridge;
    }
    return ridge;
}

void mr_glm_solve(const double *l, const double *scale, uint32_t n, double *b)
{
    for (uint32_t i = 0; i < n; i++) {
        const double *row = l + mr_glm_packed(i);
        b[i] = ((scale ? b[i] * scale[i] : b[i]) - dot(row, b, i)) / row[i];
    }
    for (uint32_t i = n; i-- > 0;) {
        const double *row = l + mr_glm_packed(i);
        b[i] /= row[i];
        for (uint32_t j = 0; j < i; j++)
            b[j] -= row[j] * b[i];
    }
    for (uint32_t i = 0; i < n && scale; i++)
        b[i] *= scale[i];
}

/* ---- directions ---- */

/* Soft thresholding: returns v moved towards 0 by `by`, but not beyond 0. */
static double shrink(double v, double by)
{
    return v > by ? v - by : v < -by ? v + by : 0;
}

static void metric_trial(struct mr_glm *g, double *room)
{
    uint32_t n = g->columns + 1;
    double t = g->h->step;
    double *d = room;
    for (uint32_t j = 0; j < n; j++)
        d[j] = -t * g->gradient[j];
    memcpy(g->trial, g->w, n * sizeof *g->w);
    if (g->h->l1 == 0) {
        mr_glm_metric_solve(g, d);
        for (uint32_t j = 0; j < n; j++)
            g->trial[j] += d[j];
        return;
    }
    mr_glm_metric_add(g->metric, n, 1, g->w, d);
    struct mr_glm_prox p = {.metric = g->metric, .c = d, .l1 = t * g->h->l1, .n = n};
    mr_glm_metric_prox(&p, g->trial, room + n);
}

static void proximal_trial(struct mr_glm *g, double *room)
{
    double t = g->h->step;
    if (g->metric) {
        metric_trial(g, room);
        return;
    }
    for (uint32_t j = 0; j < g->columns; j++)
        g->trial[j] = shrink(g->w[j] - t * g->gradient[j], t * g->h->l1);
    g->trial[g->columns] = g->w[g->columns] - t * g->gradient[g->columns];
}

/* Returns the scale of the objective, for relative tolerances. */
static double size_of(const struct mr_glm *g)
{
    return fmax(fabs(g->h->objective), 1e-10 * fabs(g->h->recent[0]));
}

/* Returns the squared length of trial - w in the metric. */
static double moved_by(const struct mr_glm *g, double *room)
{
    for (uint32_t j = 0; j <= g->columns; j++)
        room[j] = g->trial[j] - g->w[j];
    return mr_glm_metric_square(g, room, room + g->columns + 1);
}

/* Returns the scale of the objective, for relative tolerances of a fit with a metric. On separable
 * data the mean loss approaches 0, and a tolerance relative to 0 would be of no use. So the scale
 * is at least LOSS_MIN, except for the family normal. */
static double metric_size(const struct mr_glm *g)
{
    return fmax(size_of(g), g->family == MR_GLM_NORMAL ? 0 : LOSS_MIN);
}

/* Returns the Newton decrement relative to the scale of the objective. The metric M, divided by the
 * step length, takes the place of the Hessian. */
static double metric_criterion(const struct mr_glm *g, double *room)
{
    double size = metric_size(g);
    return size > 0 ? sqrt(moved_by(g, room) / g->h->step / size) : 0;
}

static double proximal_criterion(const struct mr_glm *g)
{
    double m = fabs(g->gradient[g->columns]);
    for (uint32_t j = 0; j < g->columns; j++)
        m = fmax(m, fabs(g->w[j] - shrink(g->w[j] - g->gradient[j], g->h->l1)));
    return m;
}

static void go(struct mr_glm *g, const double *d)
{
    uint32_t n = g->columns + 1;
    for (uint32_t j = 0; j < n; j++)
        g->trial[j] = g->w[j] + d[j];
    g->h->slope = dot(d, g->gradient, n);
}

/* Computes Newton's trial point and the criterion of convergence. At convergence also computes the
 * diagonal of the inverse Hessian. Overwrites `a`. */
static void newton_trial(struct mr_glm *g, double *a, double *room)
{
    uint32_t n = g->columns + 1;
    double *scale = room;
    double *d = room + n;
    double ridge = mr_glm_cholesky(a, scale, n, room + 2 * n);
    for (uint32_t j = 0; j < n; j++)
        d[j] = -g->gradient[j];
    mr_glm_solve(a, scale, n, d);
    go(g, d);
    double size = size_of(g);
    g->h->criterion = size > 0 ? sqrt(fmax(-g->h->slope, 0) / size) : 0;
    if (g->h->criterion > g->h->tol) return;
    memcpy(g->w, g->trial, n * sizeof *g->w); /* trial and w have the same loss up to rounding */
    /* mr_glm_cholesky adds a ridge to the Hessian only if columns are collinear. Then the inverse
     * Hessian has no useful diagonal, and `spread` stays 0. */
    for (uint32_t j = 0; j < n && ridge == 0; j++) {
        memset(d, 0, n * sizeof *d);
        d[j] = 1;
        mr_glm_solve(a, scale, n, d);
        g->spread[j] = d[j] / g->h->weight;
    }
}

/* Returns y^T M^-1 y with the metric M, or y^T y if the fit has no metric. */
static double pull_of(const struct mr_glm *g, const double *y, double *room)
{
    uint32_t n = g->columns + 1;
    if (!g->metric) return dot(y, y, n);
    memcpy(room, y, n * sizeof *room);
    mr_glm_metric_solve(g, room);
    return dot(y, room, n);
}

static void lbfgs_trial(struct mr_glm *g, double *room)
{
    uint32_t n = g->columns + 1;
    uint32_t pairs = (uint32_t)g->h->pairs;
    uint32_t at = (uint32_t)g->h->pairs_at;
    double *d = room;
    double *alpha = room + n;
    for (uint32_t j = 0; j < n; j++)
        d[j] = -g->gradient[j];
    double scale = g->metric ? 1 : 1 / fmax(1, sqrt(dot(d, d, n)));
    for (uint32_t k = 0; k < pairs; k++) {
        size_t i = (at + g->memory - 1 - k) % g->memory;
        const double *s = g->s + i * n;
        const double *y = g->y + i * n;
        alpha[i] = dot(s, d, n) / dot(s, y, n);
        for (uint32_t j = 0; j < n; j++)
            d[j] -= alpha[i] * y[j];
        if (k == 0) scale = dot(s, y, n) / pull_of(g, y, room + n + g->memory);
    }
    if (g->metric) mr_glm_metric_solve(g, d);
    for (uint32_t j = 0; j < n; j++)
        d[j] *= scale;
    for (uint32_t k = pairs; k-- > 0;) {
        size_t i = (at + g->memory - 1 - k) % g->memory;
        const double *s = g->s + i * n;
        const double *y = g->y + i * n;
        double beta = dot(y, d, n) / dot(s, y, n);
        for (uint32_t j = 0; j < n; j++)
            d[j] += (alpha[i] - beta) * s[j];
    }
    go(g, d);
}

/* Stores the accepted step and the change of the gradient as a pair, if their product is positive
 * enough (curvature condition). */
static void remember_pair(struct mr_glm *g, const double *gradient)
{
    uint32_t n = g->columns + 1;
    uint32_t at = (uint32_t)g->h->pairs_at;
    double *s = g->s + (size_t)at * n;
    double *y = g->y + (size_t)at * n;
    double sy = 0;
    double ss = 0;
    double yy = 0;
    /* If no place is free, the pair takes the place of the oldest pair. */
    for (uint32_t j = 0; j < n; j++) {
        s[j] = g->trial[j] - g->w[j];
        y[j] = gradient[j] - g->gradient[j];
        sy += s[j] * y[j];
        ss += s[j] * s[j];
        yy += y[j] * y[j];
    }
    if (!(sy > CURVATURE_MIN * sqrt(ss * yy))) {
        if ((uint32_t)g->h->pairs == g->memory) g->h->pairs -= 1;
        return;
    }
    g->h->pairs = fmin(g->h->pairs + 1, g->memory);
    g->h->pairs_at = (at + 1) % g->memory;
}

/* Sets the Barzilai-Borwein length of the next step, computed from the accepted step. */
static void next_length(struct mr_glm *g, const double *gradient, double *room)
{
    double ss = moved_by(g, room);
    double sy = 0;
    for (uint32_t j = 0; j <= g->columns; j++)
        sy += (g->trial[j] - g->w[j]) * (gradient[j] - g->gradient[j]);
    double t = sy > 0 ? ss / sy : 2 * g->h->step;
    double most = g->metric ? METRIC_LENGTH_MAX : LENGTH_MAX;
    if (isfinite(t)) g->h->step = fmin(fmax(t, 1 / most), most);
}

/* ---- a step ---- */

static bool by_prox(const struct mr_glm *g)
{
    return g->solver == MR_GLM_GD || g->solver == MR_GLM_PROXIMAL;
}

/* True: the approximate Wolfe condition holds (Hager and Zhang 2005). Where rounding hides the
 * change of the objective, a step is accepted if it made the directional derivative smaller. */
static bool is_flatter(const struct mr_glm *g, double objective, const double *gradient)
{
    double noise = NOISE * fabs(g->h->objective);
    double along = 0;
    if (-g->h->slope > noise || objective > g->h->objective + noise) return false;
    for (uint32_t j = 0; j <= g->columns; j++)
        along += (g->trial[j] - g->w[j]) * gradient[j];
    return fabs(along) < FLATTER * fabs(g->h->slope);
}

static bool is_acceptable(
    const struct mr_glm *g, double objective, const double *gradient, double *room)
{
    const struct mr_glm_head *h = g->h;
    if (!isfinite(objective)) return false;
    if (!by_prox(g))
        return objective <= h->objective + ARMIJO * h->slope + SLACK * fabs(h->objective) ||
               is_flatter(g, objective, gradient);
    double worst = h->recent[0];
    for (unsigned i = 1; i < MR_GLM_RECENT; i++)
        worst = fmax(worst, h->recent[i]);
    return objective <= worst - ARMIJO / h->step * moved_by(g, room) + SLACK * fabs(worst);
}

static void go_back(struct mr_glm *g, double *room)
{
    double moved = 0;
    /* True: the change of the objective is smaller than the rounding error. */
    bool lost = !by_prox(g) && -g->h->slope <= SLACK * fabs(g->h->objective);
    g->h->rejected += 1;
    g->h->step *= 0.5;
    g->h->slope *= 0.5;
    /* After many halvings, the step is at most 1, the length at which the metric stands for the
     * Hessian. */
    if (g->metric && g->h->rejected == REJECTED_MAX / 2) g->h->step = fmin(g->h->step, 1);
    for (uint32_t j = 0; j <= g->columns && !by_prox(g); j++)
        g->trial[j] = 0.5 * (g->trial[j] + g->w[j]);
    if (by_prox(g)) proximal_trial(g, room);
    for (uint32_t j = 0; j <= g->columns; j++)
        moved = fmax(moved, fabs(g->trial[j] - g->w[j]));
    if (g->h->rejected > REJECTED_MAX || moved == 0 || lost) g->h->status = MR_GLM_STALLED;
}

static void move(struct mr_glm *g, const struct mr_glm_partial *p, double objective, double *room)
{
    struct mr_glm_head *h = g->h;
    size_t bytes = (g->columns + 1) * sizeof(double);
    bool first = h->evaluations == 1;
    if (first) {
        for (unsigned i = 0; i < MR_GLM_RECENT; i++)
            h->recent[i] = objective;
        h->step = g->metric ? 1 : 1 / fmax(1, sqrt(dot(p->gradient, p->gradient, g->columns + 1)));
    } else {
        h->iterations += 1;
        if (g->solver == MR_GLM_LBFGS) remember_pair(g, p->gradient);
        if (by_prox(g)) {
            next_length(g, p->gradient, room);
            h->recent[(unsigned)fmod(h->iterations, MR_GLM_RECENT)] = objective;
        }
    }
    memcpy(g->w, g->trial, bytes);
    memcpy(g->gradient, p->gradient, bytes);
    h->objective = objective;
    h->fit = p->h->loss;
    h->wrong = p->h->wrong;
    h->rejected = 0;
}

/* Chooses the next trial point, and sets the criterion of convergence and the status. */
static void look_ahead(struct mr_glm *g, double *hessian, double *room)
{
    struct mr_glm_head *h = g->h;
    uint32_t n = g->columns + 1;
    if (g->solver == MR_GLM_NEWTON) {
        newton_trial(g, hessian, room);
    } else if (g->solver == MR_GLM_LBFGS) {
        h->criterion = largest(g->gradient, n);
        lbfgs_trial(g, room);
        double size = metric_size(g);
        if (g->metric && size > 0) h->criterion = sqrt(fmax(-h->slope, 0) / size);
    } else {
        proximal_trial(g, room);
        h->criterion = g->metric ? metric_criterion(g, room) : proximal_criterion(g);
    }
    /* If rounding made a direction that does not lead downhill, the negative gradient (in the
     * metric) replaces the direction. */
    if (!by_prox(g) && !(h->slope < 0)) {
        h->pairs = h->pairs_at = 0;
        for (uint32_t j = 0; j < n; j++)
            room[j] = -g->gradient[j];
        if (g->metric) mr_glm_metric_solve(g, room);
        go(g, room);
    }
    if (mr_glm_is_separated(g))
        h->status = MR_GLM_SEPARATED;
    else if (h->criterion <= h->tol)
        h->status = MR_GLM_CONVERGED;
    else if (h->iterations_max > 0 && h->iterations >= h->iterations_max)
        h->status = MR_GLM_ITERATIONS;
}

/* For the family poisson: estimates the Hessian at the solution, relative to the first Hessian. The
 * Hessian weights rows by their means. A fit with an intercept ends with a sum of means equal to
 * the sum of counts, so the ratio of the two sums is the estimate. */
static double growth(const struct mr_glm *g, const struct mr_glm_partial *p)
{
    double means = p->hessian[mr_glm_packed(g->columns) + g->columns];
    double counts = means - p->gradient[g->columns];
    bool known = g->family == MR_GLM_POISSON && g->h->intercept != 0 && means > 0;
    return known ? fmax(counts / means, GROWTH_MIN) : 1;
}

/* Takes the first evaluation. If the fit has a metric, stores the Hessian, scaled by growth(), as
 * the metric. MR_ERANGE: the loss, the gradient or the metric's Hessian is not finite. */
static int begin(struct mr_glm *g, const struct mr_glm_partial *p, double objective, double *room,
    struct mr_error *e)
{
    uint32_t n = g->columns + 1;
    bool finite = isfinite(objective) && isfinite(dot(p->gradient, p->gradient, n));
    for (size_t i = 0; g->metric && i < mr_glm_packed(n); i++)
        finite = finite && isfinite(p->hessian[i]);
    if (!finite)
        return mr_fail(e, MR_ERANGE,
            "the loss is %g where the fit begins, too large to go on from: an \"offset\", y, or the "
            "coefficients of \"from\" are far out",
            objective);
    if (!g->metric) return MR_OK;
    double by = growth(g, p);
    for (size_t i = 0; i < mr_glm_packed(n); i++)
        p->hessian[i] *= by;
    mr_glm_metric_take(g, p->hessian, room);
    return MR_OK;
}

/* Accepts the starting point of ADMM with the losses of its evaluation. Sets the initial rho if the
 * argument "rho" of the fit is 0. */
static void begin_admm(struct mr_glm *g, const struct mr_glm_partial *p, double objective)
{
    struct mr_glm_head *h = g->h;
    memcpy(g->w, g->trial, (g->columns + 1) * sizeof(double));
    h->objective = objective;
    h->fit = p->h->loss;
    h->wrong = p->h->wrong;
    if (!(h->step > 0)) h->step = 1.0 / g->chunks;
}

size_t mr_glm_step_numbers(const struct mr_glm *g)
{
    uint32_t n = g->columns + 1;
    if (g->solver == MR_GLM_ADMM && g->h->metric == 0) return 2 * (size_t)n;
    if (g->h->metric != 0) return 3 * (size_t)n + g->memory + mr_glm_metric_numbers(g->columns);
    return 2 * (size_t)n + (g->solver == MR_GLM_NEWTON ? mr_glm_packed(n) : g->memory);
}

int mr_glm_step(struct mr_glm *g, struct mr_glm_partial *p, double *room, struct mr_error *e)
{
    struct mr_glm_head *h = g->h;
    if (mr_glm_is_local(g)) return mr_glm_admm_step(g, p, room, e);
    if (h->evaluations == 0) {
        h->rows = p->h->rows;
        h->weight = p->h->weight;
        h->saturated = p->h->saturated;
        h->least = p->h->least;
        h->offset = p->h->offset;
    }
    double size = 0;
    double sum = 0;
    mr_glm_units(g, p->gradient, p->hessian);
    for (uint32_t j = 0; j < g->columns; j++) {
        size += fabs(g->trial[j]);
        sum += g->trial[j] * g->trial[j];
        p->gradient[j] += h->l2 * g->trial[j];
        if (p->hessian && g->solver != MR_GLM_ADMM) p->hessian[mr_glm_packed(j) + j] += h->l2;
    }
    double objective = p->h->loss / h->weight + h->l1 * size + 0.5 * h->l2 * sum;
    h->evaluations += 1;
    int err = h->evaluations == 1 ? begin(g, p, objective, room, e) : MR_OK;
    if (err) return err;
    if (g->solver == MR_GLM_ADMM) {
        begin_admm(g, p, objective);
        return MR_OK;
    }
    if (h->evaluations > 1 && !is_acceptable(g, objective, p->gradient, room)) {
        go_back(g, room);
        return MR_OK;
    }
    move(g, p, objective, room);
    look_ahead(g, p->hessian, room);
    return MR_OK;
}
