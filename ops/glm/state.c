/* Checks, copies and converts states of fits of generalized linear models (state.h). */
#include "ops/glm/state.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

#define STATE_MAGIC 1735159091.0 /* "glm3" */

const char *const mr_glm_families[MR_GLM_FAMILIES] = {
    [MR_GLM_LOGISTIC] = "logistic", [MR_GLM_NORMAL] = "normal", [MR_GLM_POISSON] = "poisson"};
const char *const mr_glm_solvers[MR_GLM_SOLVERS] = {[MR_GLM_GD] = "gd",
    [MR_GLM_NEWTON] = "newton",
    [MR_GLM_LBFGS] = "lbfgs",
    [MR_GLM_PROXIMAL] = "proximal",
    [MR_GLM_ADMM] = "admm"};
const char *const mr_glm_statuses[MR_GLM_STATUSES] = {
    [MR_GLM_RUNNING] = "not converged: the loop ended before the fit",
    [MR_GLM_CONVERGED] = "converged",
    [MR_GLM_STALLED] = "no step makes it better",
    [MR_GLM_ITERATIONS] = "as many iterations as were allowed",
    [MR_GLM_SEPARATED] = "the classes are separated: coefficients grow without bound"};

static size_t vectors_of(const struct mr_glm_head *h)
{
    size_t n = 3 + (h->standardized != 0 ? 2 : 0);
    if ((int)h->solver == MR_GLM_NEWTON) n += 1;
    if ((int)h->solver == MR_GLM_LBFGS) n += 2 * (size_t)h->memory;
    if ((int)h->solver == MR_GLM_ADMM) n += (size_t)h->chunks;
    return n;
}

bool mr_glm_is_square(const struct mr_glm_head *h)
{
    return (int)h->solver == MR_GLM_NEWTON || (int)h->solver == MR_GLM_ADMM || h->metric != 0;
}

size_t mr_glm_numbers(const struct mr_glm_head *h)
{
    size_t n = (size_t)h->columns + 1;
    if (h->columns == 0) return MR_GLM_HEAD;
    return MR_GLM_HEAD + vectors_of(h) * n + (h->metric != 0 ? mr_glm_packed((uint32_t)n) : 0);
}

static bool is_head(const struct mr_glm_head *h)
{
    if (h->magic != STATE_MAGIC) return false;
    if (!mr_glm_is_count(h->family, MR_GLM_FAMILIES - 1) ||
        !mr_glm_is_count(h->solver, MR_GLM_SOLVERS - 1))
        return false;
    if (!mr_glm_is_count(h->status, MR_GLM_STATUSES - 1) || !mr_glm_is_count(h->intercept, 1))
        return false;
    if (!mr_glm_is_count(h->standardized, 1) || !mr_glm_is_count(h->columns, MR_GLM_COLUMNS_MAX))
        return false;
    if (!mr_glm_is_count(h->chunks, MR_GLM_CHUNKS_MAX) ||
        !mr_glm_is_count(h->memory, MR_GLM_MEMORY_MAX))
        return false;
    if (h->memory < 1 || !mr_glm_is_count(h->pairs, h->memory)) return false;
    if (!mr_glm_is_count(h->pairs_at, h->memory - 1) || !mr_glm_is_count(h->evaluations, 1e15))
        return false;
    if (!mr_glm_is_count(h->iterations, 1e15)) return false;
    if (h->evaluations > 0 && (h->columns == 0 || !(h->weight > 0))) return false;
    if (!mr_glm_is_count(h->metric, 1) || (h->metric != 0 && (int)h->solver == MR_GLM_NEWTON))
        return false;
    return !mr_glm_is_square(h) || h->columns <= MR_GLM_SQUARE_COLUMNS_MAX;
}

static void lay_out(struct mr_glm *g, double *state)
{
    g->h = (struct mr_glm_head *)(void *)state;
    g->columns = (uint32_t)g->h->columns;
    g->chunks = (uint32_t)g->h->chunks;
    g->memory = (uint32_t)g->h->memory;
    g->family = (enum mr_glm_family)(int)g->h->family;
    g->solver = (enum mr_glm_solver)(int)g->h->solver;
    size_t n = (size_t)g->columns + 1;
    double *at = state + MR_GLM_HEAD;
    g->w = at;
    g->trial = at + n;
    g->gradient = at + 2 * n;
    at += 3 * n;
    g->center = g->h->standardized != 0 ? at : NULL;
    g->scale = g->h->standardized != 0 ? at + n : NULL;
    if (g->scale) at += 2 * n;
    g->metric = g->h->metric != 0 ? at : NULL;
    if (g->metric) at += mr_glm_packed((uint32_t)n);
    g->spread = g->s = g->y = g->u = NULL;
    if (g->solver == MR_GLM_NEWTON) g->spread = at;
    if (g->solver == MR_GLM_ADMM) g->u = at;
    if (g->solver != MR_GLM_LBFGS) return;
    g->s = at;
    g->y = at + g->memory * n;
}

int mr_glm_open(double *state, size_t numbers, struct mr_glm *out, struct mr_error *e)
{
    const struct mr_glm_head *h = (const struct mr_glm_head *)(const void *)state;
    if (numbers < MR_GLM_HEAD || !is_head(h) || numbers != mr_glm_numbers(h))
        return mr_fail(e, MR_EINVAL, "expected what glm.start or glm.step gave");
    lay_out(out, state);
    return MR_OK;
}

void mr_glm_copy(
    const struct mr_glm *from, const struct mr_glm_head *head, double *to, struct mr_glm *out)
{
    memcpy(to, head, sizeof *head);
    to[0] = STATE_MAGIC;
    lay_out(out, to);
    if (!from || !from->columns) return;
    mr_assert(from->columns == out->columns && from->chunks <= out->chunks);
    memcpy(to + MR_GLM_HEAD, (const double *)(const void *)from->h + MR_GLM_HEAD,
        (mr_glm_numbers(from->h) - MR_GLM_HEAD) * sizeof *to);
}

void mr_glm_raw(const struct mr_glm *g, const double *w, double *raw)
{
    uint32_t p = g->columns;
    double b = w[p];
    for (uint32_t j = 0; j < p; j++) {
        raw[j] = g->scale ? w[j] / g->scale[j] : w[j];
        if (g->center) b -= raw[j] * g->center[j];
    }
    raw[p] = b;
}

void mr_glm_units(const struct mr_glm *g, double *gradient, double *a)
{
    uint32_t p = g->columns;
    double per = 1 / g->h->weight;
    for (uint32_t j = 0; j <= p; j++)
        gradient[j] *= per;
    for (uint32_t j = 0; j < p && g->scale; j++)
        gradient[j] = (gradient[j] - g->center[j] * gradient[p]) / g->scale[j];
    if (g->h->intercept == 0) gradient[p] = 0;
    if (!a) return;
    double *last = a + mr_glm_packed(p);
    for (size_t i = 0; i < mr_glm_packed(p + 1); i++)
        a[i] *= per;
    /* This loop reads the last row, so it runs before the loop that changes the last row. */
    for (uint32_t j = 0; j < p && g->scale; j++)
        for (uint32_t k = 0; k <= j; k++)
            a[mr_glm_packed(j) + k] =
                (a[mr_glm_packed(j) + k] - g->center[j] * last[k] - g->center[k] * last[j] +
                    g->center[j] * g->center[k] * last[p]) /
                (g->scale[j] * g->scale[k]);
    for (uint32_t j = 0; j < p && g->scale; j++)
        last[j] = (last[j] - g->center[j] * last[p]) / g->scale[j];
    if (g->h->intercept != 0) return;
    memset(last, 0, p * sizeof *last);
    /* The fit has no intercept. The gradient of the intercept is 0, and its row of the Hessian
     * becomes 0 … 0 1. So Newton's step does not change the intercept. */
    last[p] = 1;
}
