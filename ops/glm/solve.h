/* The step of a fit: turns a state into the next state, with the sum of the partials. */
#pragma once

#include "ops/glm/partial.h"
#include "ops/glm/state.h"

/* True: the next step needs a Hessian. */
bool mr_glm_wants_hessian(const struct mr_glm *g);
/* True: chunks solve their own problems, which ADMM does after its first evaluation. */
bool mr_glm_is_local(const struct mr_glm *g);
/* True: this is logistic regression without penalty, and w classifies every row correctly. Then
 * scaling w up improves the loss without end, and no finite minimum exists (Albert and Anderson
 * 1984). */
bool mr_glm_is_separated(const struct mr_glm *g);
/* Returns 0 if X w + b, without offsets, is known to classify each row of weight above 0 correctly,
 * else 1. If rows have offsets, `counted` decides: the number of rows in the wrong class
 * (mr_glm_sums.wrong). If rows have no offsets, `loss` decides: a single row in the wrong class
 * costs at least the smallest weight times log 2. */
double mr_glm_wrong(
    const struct mr_glm *g, const struct mr_glm_rows *r, double loss, double counted);

/* Changes `g` to the state after an evaluation at `trial`. Overwrites `p`. `room` has
 * mr_glm_step_numbers doubles. MR_EINVAL: under ADMM, `p` does not have each of the chunks 0 …
 * g->chunks - 1 exactly once. MR_ERANGE: a number of the first evaluation is not finite. */
size_t mr_glm_step_numbers(const struct mr_glm *g);
int mr_glm_step(struct mr_glm *g, struct mr_glm_partial *p, double *room, struct mr_error *e);

/* Replaces the packed lower triangle A by its Cholesky factor. Columns are first scaled to a
 * diagonal of 1; `scale` receives the n factors. If A is not positive definite, a growing ridge is
 * added. Returns the ridge, or 0 if none was needed. `room` has as many numbers as A. */
double mr_glm_cholesky(double *a, double *scale, uint32_t n, double *room);
/* Solves A x = b and overwrites `b` with x. `l` and `scale`: what mr_glm_cholesky made of A.
 * `scale` NULL: `l` is the Cholesky factor of A itself, without scaling. */
void mr_glm_solve(const double *l, const double *scale, uint32_t n, double *b);
