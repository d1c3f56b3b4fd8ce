/* The metric of a preconditioned fit: M, the Hessian of the smooth part where the fit began. Steps
 * are as long as M says, which is a change of variables to ones that do not hang together - R w of
 * M = R^T R - without the variables being changed. So penalties stay those of w. */
#pragma once

#include "ops/glm/state.h"

/* Keeps what the first look has found, by w's units. `room` of mr_glm_metric_numbers doubles. */
void mr_glm_metric_take(struct mr_glm *g, const double *packed_hessian, double *room);
size_t mr_glm_metric_numbers(uint32_t columns);

/* d^T M d; without a metric the square of d's length. */
double mr_glm_metric_square(const struct mr_glm *g, const double *d, double *room);
/* M^-1 d in place of d: gd and lbfgs, and proximal without l1. */
void mr_glm_metric_solve(const struct mr_glm *g, double *d);

struct mr_glm_prox { /* least of x^T M x / 2 - c^T x + l1 |x|_1 + l2 / 2 |x|^2, but for the last */
    const double *metric;
    const double *c;
    double l1;
    double l2;
    uint32_t n; /* the last of them, the intercept, has no penalty */
};

/* c += by × M x. */
void mr_glm_metric_add(const double *metric, uint32_t n, double by, const double *x, double *c);
/* From `x` on, in place. Bounded work: where that is not enough, it ends at something better. */
void mr_glm_metric_prox(const struct mr_glm_prox *p, double *x, double *room);
