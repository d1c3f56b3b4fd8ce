/* The metric of a preconditioned fit: M, the Hessian of the smooth part of the objective at the
 * start of the fit, or a multiple of this Hessian. Steps are measured by M. With M = R^T R, this
 * has the effect of fitting the variables R w, which are not correlated. But w itself does not
 * change, so penalties keep acting on w. */
#pragma once

#include "ops/glm/state.h"

/* Stores `packed_hessian` as the metric. It is the Hessian with respect to w at the first
 * evaluation, which the caller may have scaled. `room` has mr_glm_metric_numbers doubles. */
void mr_glm_metric_take(struct mr_glm *g, const double *packed_hessian, double *room);
size_t mr_glm_metric_numbers(uint32_t columns);

/* Returns d^T M d, or d^T d without a metric. */
double mr_glm_metric_square(const struct mr_glm *g, const double *d, double *room);
/* Replaces d by M^-1 d. The fit must store the factor of M, as do the fits of the solvers gd and
 * lbfgs, and those of proximal without an l1 penalty. */
void mr_glm_metric_solve(const struct mr_glm *g, double *d);

/* A problem: minimise x^T M x / 2 - c^T x + l1 |x|_1 + l2 / 2 |x|^2. The last coordinate, the
 * intercept, has no penalty. */
struct mr_glm_prox {
    const double *metric;
    const double *c;
    double l1;
    double l2;
    uint32_t n; /* number of coordinates, with the intercept */
};

/* c += by × M x. */
void mr_glm_metric_add(const double *metric, uint32_t n, double by, const double *x, double *c);
/* Solves problem `p`, starting from `x`, and writes the solution to `x`. The work is bounded. If
 * the bound is reached, `x` is better than before, but not the minimum. */
void mr_glm_metric_prox(const struct mr_glm_prox *p, double *x, double *room);
