/* One pass over rows of a generalized linear model: loss, gradient and, when wanted, Hessian at
 * given coefficients, each row read once from memory. Pure: knows no solver, no penalty, no task.
 *
 * With eta = X w + b + offset, summed over rows, each times its weight:
 *   logistic  log(1 + exp(eta)) - y eta      mean 1 / (1 + exp(-eta))   y in [0, 1]
 *   normal    (y - eta)^2 / 2                mean eta
 *   poisson   exp(eta) - y eta               mean exp(eta)              y >= 0
 * Links are the canonical ones, so the gradient is X^T (mean - y) and the Hessian X^T V X. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mr_glm_family { MR_GLM_LOGISTIC, MR_GLM_NORMAL, MR_GLM_POISSON, MR_GLM_FAMILIES };

struct mr_glm_rows {
    const double *x; /* rows × columns, row-major */
    const double *y;
    const double *weights; /* NULL: 1 each */
    const double *offset;  /* NULL: 0 each */
    uint64_t rows;
    uint32_t columns;
};

/* Sums; the intercept comes last, so vectors have columns + 1 numbers. */
struct mr_glm_sums {
    double loss;
    /* Logistic rows with an offset and a weight that X w + b alone puts on the other side. */
    double wrong;
    double *gradient;
    double *hessian; /* lower triangle, row by row, packed; NULL: not wanted */
};

/* Bytes of memory that a pass works in, 64-byte aligned. */
size_t mr_glm_work_bytes(uint32_t columns, bool hessian);

/* `coef` has columns + 1 numbers. What `s` points to is overwritten. `is_cancelled` is asked every
 * few hundred microseconds; false is returned as soon as it says yes. */
bool mr_glm_pass(enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef,
    void *work, struct mr_glm_sums *s, bool (*is_cancelled)(void *ctx), void *ctx);

/* The same pass in blocks that can be made at the same time, each with `work` and sums of its own.
 * How many there are, and so the bits of their sum, follows from the rows alone; with many columns
 * and a Hessian, whose sums are large, it is one. */
uint32_t mr_glm_blocks(const struct mr_glm_rows *r, bool hessian);
void mr_glm_pass_block(enum mr_glm_family family, const struct mr_glm_rows *r, uint32_t blocks,
    uint32_t block, const double *coef, void *work, struct mr_glm_sums *s);

/* eta of all rows into `eta`, then (when wanted) the means over it. `work` as for a pass. */
void mr_glm_predict(enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef,
    void *work, bool means, double *eta);

static inline size_t mr_glm_packed(uint32_t n)
{
    return (size_t)n * (n + 1) / 2;
}

/* Is `v` a whole number from 0 to `max`? */
static inline bool mr_glm_is_count(double v, double max)
{
    return v >= 0 && v <= max && v == (double)(uint64_t)v;
}
