/* The step of a fit: what the parts answered becomes the next state. */
#pragma once

#include "ops/glm/partial.h"
#include "ops/glm/state.h"

/* Does a step want a Hessian? Do the parts solve their own problem (ADMM, after its first look)? */
bool mr_glm_wants_hessian(const struct mr_glm *g);
bool mr_glm_is_local(const struct mr_glm *g);
/* Logistic without penalty: is every row on its class's side of w? Then the further out, the
 * better, and no coefficients are the best (Albert and Anderson 1984). */
bool mr_glm_is_separated(const struct mr_glm *g);
/* 1: rows of a chunk are on the other side of X w + b alone. `counted`: of mr_glm_sums, where rows
 * have offsets; elsewhere the loss tells, for each such row costs its weight times log 2. */
double mr_glm_wrong(
    const struct mr_glm *g, const struct mr_glm_rows *r, double loss, double counted);

/* The state after an evaluation at `trial`. `p` is spoilt. `room` of mr_glm_step_numbers doubles.
 * MR_EINVAL: chunk numbers of ADMM. MR_ERANGE: no finite loss or gradient where it begins. */
size_t mr_glm_step_numbers(const struct mr_glm *g);
int mr_glm_step(struct mr_glm *g, struct mr_glm_partial *p, double *room, struct mr_error *e);

/* In place of the lower triangle A (packed) its Cholesky factor, columns scaled to a diagonal of 1,
 * on failure with a ridge that grows, and is returned; `scale` (n numbers) belongs to it. `room` of
 * as many numbers as A. */
double mr_glm_cholesky(double *a, double *scale, uint32_t n, double *room);
/* b becomes the solution; `scale` NULL: 1 each. */
void mr_glm_solve(const double *l, const double *scale, uint32_t n, double *b);
