/* Fits one linear classifier by stochastic gradient descent (sgd.h). */
#include "ops/ml/sgd.h"

#include "ops/kernel/macros.h"
#include "ops/ml/random.h"

#include <float.h>
#include <math.h>

#define SLOPE_MAX 1e12 /* bound on the derivative of the loss */
/* If the scale of the weights is smaller than this, the scale is multiplied into the weights and
 * becomes 1. */
#define SCALE_MIN 1e-9
/* Work between two checks for cancellation, as rows × columns / 64. */
#define CANCEL_ROWS 65536.0
#define ETA_MIN 1e-6 /* the smallest rate of "adaptive" */

/* ---- losses, by prediction p and label y = ±1 ---- */

static double loss_of(enum mr_sgd_loss loss, double p, double y)
{
    double z = p * y;
    switch (loss) {
    case MR_SGD_HINGE: return z <= 1 ? 1 - z : 0;
    case MR_SGD_PERCEPTRON: return z <= 0 ? -z : 0;
    case MR_SGD_LOG:
        if (z > 18) return exp(-z);
        return z < -18 ? -z : log(1 + exp(-z));
    case MR_SGD_SQUARED_HINGE: return z < 1 ? (1 - z) * (1 - z) : 0;
    case MR_SGD_MODIFIED_HUBER: return z >= 1 ? 0 : z >= -1 ? (1 - z) * (1 - z) : -4 * z;
    case MR_SGD_SQUARED_ERROR:
    case MR_SGD_LOSSES: break;
    }
    return 0.5 * (p - y) * (p - y);
}

static double slope_of(enum mr_sgd_loss loss, double p, double y)
{
    double z = p * y;
    switch (loss) {
    case MR_SGD_HINGE: return z <= 1 ? -y : 0;
    case MR_SGD_PERCEPTRON: return z <= 0 ? -y : 0;
    case MR_SGD_LOG:
        if (z > 18) return exp(-z) * -y;
        return z < -18 ? -y : -y / (exp(z) + 1);
    case MR_SGD_SQUARED_HINGE: return z < 1 ? -2 * y * (1 - z) : 0;
    case MR_SGD_MODIFIED_HUBER: return z >= 1 ? 0 : z >= -1 ? 2 * (1 - z) * -y : -4 * y;
    case MR_SGD_SQUARED_ERROR:
    case MR_SGD_LOSSES: break;
    }
    return p - y;
}

/* ---- the weights are w × scale ---- */

struct state {
    double *w;
    uint32_t n;
    double scale;
    double intercept;
    double mean_intercept;
    double eta;
    double t0;      /* the learning rate "optimal" is 1 / (alpha (t0 + t - 1)) */
    double t;       /* number of the step, from 1 */
    double penalty; /* L1: the penalty that each weight should have received so far */
    double l1_ratio;
};

/* Returns x · w. Adds in order, as scikit-learn does: with long steps, a difference in the last bit
 * would lead to another model. */
double mr_sgd_dot(const double *x, const double *w, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * w[i];
    return sum;
}

static void fold_scale(struct state *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->w[i] *= s->scale;
    s->scale = 1;
}

static void shrink(struct state *s, double by)
{
    s->scale *= by;
    if (s->scale < SCALE_MIN) fold_scale(s);
}

MR_CLONES static void add(struct state *s, const double *x, double by)
{
    double step = by / s->scale;
    double *w = s->w;
    uint32_t n = s->n;
    for (uint32_t i = 0; i < n; i++)
        w[i] += x[i] * step;
}

/* Applies the cumulative L1 penalty: moves each weight towards 0 by the penalty that it has not
 * received yet, but not beyond 0. The loop has no branches and calls, so the compiler vectorises
 * it. */
MR_CLONES static void give_l1(struct state *s, double *credit)
{
    double *w = s->w;
    double scale = s->scale;
    double penalty = s->penalty;
    uint32_t n = s->n;
    for (uint32_t i = 0; i < n; i++) {
        double z = w[i];
        double down = z - (penalty + credit[i]) / scale;
        double up = z + (penalty - credit[i]) / scale;
        double moved = z > 0 ? (down > 0 ? down : 0) : (up < 0 ? up : 0);
        moved = z == 0 ? z : moved;
        w[i] = moved;
        credit[i] += scale * (moved - z);
    }
}

static void take_mean(struct state *s, double *mean)
{
    double share = 1 / s->t;
    for (uint32_t i = 0; i < s->n; i++)
        mean[i] += (s->w[i] * s->scale - mean[i]) * share;
    s->mean_intercept += (s->intercept - s->mean_intercept) * share;
}

/* ---- a step, an epoch ---- */

static void step(const struct mr_sgd_settings *c, const struct mr_sgd_work *w, struct state *s,
    const double *x, double p, double y)
{
    double slope = slope_of(c->loss, p, y);
    if (fabs(slope) > SLOPE_MAX) slope = copysign(SLOPE_MAX, slope); /* a slope of NaN stays NaN */
    double by = -s->eta * slope;
    if (c->penalty == MR_SGD_L2 || c->penalty == MR_SGD_ELASTICNET)
        shrink(s, fmax(0, 1 - (1 - s->l1_ratio) * s->eta * c->alpha));
    if (by != 0) add(s, x, by);
    if (c->fit_intercept) s->intercept += by;
    if (c->average) take_mean(s, w->mean);
    if (c->penalty == MR_SGD_L1 || c->penalty == MR_SGD_ELASTICNET) {
        s->penalty += s->l1_ratio * s->eta * c->alpha;
        give_l1(s, w->credit);
    }
    s->t += 1;
}

/* Runs an epoch and sets `*sum` to its summed loss. False: the task is cancelled. */
static bool epoch(const struct mr_sgd_settings *c, const struct mr_sgd_rows *r,
    const struct mr_sgd_work *w, struct state *s, double *sum)
{
    uint32_t every = (uint32_t)(64 * CANCEL_ROWS / (r->columns + 1)) + 1;
    *sum = 0;
    for (uint32_t i = 0; i < r->rows; i++) {
        const double *x = r->x + (uint64_t)w->order[i] * r->columns;
        double y = r->of[w->order[i]] == r->positive ? 1 : -1;
        double p = mr_sgd_dot(x, s->w, s->n) * s->scale + s->intercept;
        if (c->rate == MR_SGD_OPTIMAL)
            s->eta = 1 / (c->alpha * (s->t0 + s->t - 1));
        else if (c->rate == MR_SGD_INVSCALING)
            s->eta = c->eta0 / pow(s->t, c->power_t);
        *sum += loss_of(c->loss, p, y);
        step(c, w, s, x, p, y);
        if (i % every == every - 1 && w->is_cancelled(w->ctx)) return false;
    }
    return !w->is_cancelled(w->ctx);
}

static bool is_finite(const struct state *s)
{
    if (!isfinite(s->intercept)) return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (!isfinite(s->w[i])) return false;
    return true;
}

static void begin(const struct mr_sgd_settings *c, const struct mr_sgd_rows *r,
    struct mr_sgd_work *w, struct state *s)
{
    *s = (struct state){.w = w->weights,
        .n = r->columns,
        .scale = 1,
        .eta = c->eta0,
        .t = 1,
        .l1_ratio = c->penalty == MR_SGD_L1           ? 1
                    : c->penalty == MR_SGD_ELASTICNET ? c->l1_ratio
                                                      : 0};
    for (uint32_t i = 0; i < r->rows; i++)
        w->order[i] = i;
    if (c->rate != MR_SGD_OPTIMAL) return;
    double typical = sqrt(1 / sqrt(c->alpha));
    double first = typical / fmax(1, slope_of(c->loss, -typical, 1));
    s->t0 = 1 / (first * c->alpha);
}

/* Called after each epoch. `*idle`: number of epochs in a row without progress. True: the fit ends,
 * because `*idle` has reached `patience`. An adaptive rate above ETA_MIN is reduced instead. */
static bool is_over(const struct mr_sgd_settings *c, struct state *s, uint32_t *idle)
{
    if (*idle < c->patience) return false;
    if (c->rate != MR_SGD_ADAPTIVE || s->eta <= ETA_MIN) return true;
    s->eta /= 5;
    *idle = 0;
    return false;
}

enum mr_sgd_end mr_sgd_fit(const struct mr_sgd_settings *c, const struct mr_sgd_rows *r,
    struct mr_sgd_work *w, double *intercept, uint32_t *epochs)
{
    struct state s;
    begin(c, r, w, &s);
    double best = INFINITY;
    uint32_t idle = 0;
    uint32_t done = 0;
    while (done < c->epochs) {
        double sum = 0;
        if (c->shuffle) mr_rows_shuffle(w->shuffle_seed, w->order, r->rows);
        if (!epoch(c, r, w, &s, &sum)) return MR_SGD_CANCELLED;
        done++;
        if (!is_finite(&s)) return MR_SGD_DIVERGED;
        idle = isfinite(c->tol) && sum > best - c->tol * r->rows ? idle + 1 : 0;
        best = fmin(best, sum);
        if (is_over(c, &s, &idle)) break;
    }
    fold_scale(&s);
    if (c->average)
        for (uint32_t i = 0; i < s.n; i++)
            s.w[i] = w->mean[i];
    *intercept = c->average ? s.mean_intercept : s.intercept;
    *epochs = done;
    return MR_SGD_DONE;
}
