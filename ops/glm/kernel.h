/* One pass over the rows of a generalized linear model: loss, gradient and, if wanted, the Hessian
 * at given coefficients. Each row is read from memory once. Solvers, penalties and tasks are not
 * known here.
 *
 * Loss and mean of one row, where eta = X w + b + offset (the sums take each row times its weight):
 *   family    loss                           mean                       y
 *   logistic  log(1 + exp(eta)) - y eta      1 / (1 + exp(-eta))        in [0, 1]
 *   normal    (y - eta)^2 / 2                eta                        any
 *   poisson   exp(eta) - y eta               exp(eta)                   >= 0
 *
 * The links are the canonical ones. So the gradient is X^T (mean - y), and the Hessian is X^T V X,
 * where V has the variances of the rows on its diagonal. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mr_glm_family { MR_GLM_LOGISTIC, MR_GLM_NORMAL, MR_GLM_POISSON, MR_GLM_FAMILIES };

struct mr_glm_rows {
    const double *x; /* rows × columns, row-major */
    const double *y;
    const double *weights; /* a weight for each row; NULL: each weight is 1 */
    const double *offset;  /* an offset for each row; NULL: each offset is 0 */
    uint64_t rows;
    uint32_t columns;
};

/* Sums over rows. Vectors have columns + 1 numbers; the last one belongs to the intercept. */
struct mr_glm_sums {
    double loss;
    /* The number of rows that X w + b, without the offset, puts in the wrong class. Rows of weight
     * 0 do not count. Only computed for logistic rows with an offset. */
    double wrong;
    double *gradient;
    double *hessian; /* the lower triangle, packed row by row; NULL: not wanted */
};

/* Returns the bytes of working memory for a pass. The memory must be 64-byte aligned. */
size_t mr_glm_work_bytes(uint32_t columns, bool hessian);

/* Runs one pass and overwrites the sums in `s`. `coef` has columns + 1 numbers. Calls
 * `is_cancelled` every few hundred microseconds. True: the sums are complete. False: is_cancelled
 * returned true. */
bool mr_glm_pass(enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef,
    void *work, struct mr_glm_sums *s, bool (*is_cancelled)(void *ctx), void *ctx);

/* Run the same pass in blocks, which several threads may compute at the same time. mr_glm_blocks
 * returns the number of blocks, and mr_glm_pass_block computes the sums of one block. Each thread
 * has its own `work`, and each block its own sums. The number of blocks depends on `r` and
 * `hessian`, not on the threads, so the total has the same bits on any number of threads. With many
 * columns and a Hessian the sums are large, and there is only one block. */
uint32_t mr_glm_blocks(const struct mr_glm_rows *r, bool hessian);
void mr_glm_pass_block(enum mr_glm_family family, const struct mr_glm_rows *r, uint32_t blocks,
    uint32_t block, const double *coef, void *work, struct mr_glm_sums *s);

/* Writes eta of all rows, or with `means` the mean of each row. `work` has
 * mr_glm_work_bytes(columns, false). */
void mr_glm_predict(enum mr_glm_family family, const struct mr_glm_rows *r, const double *coef,
    void *work, bool means, double *eta);

/* Returns the number of elements of a packed lower triangle of n rows, which is also the index of
 * the first element of row n. */
static inline size_t mr_glm_packed(uint32_t n)
{
    return (size_t)n * (n + 1) / 2;
}

/* True: `v` is a whole number from 0 to `max`. */
static inline bool mr_glm_is_count(double v, double max)
{
    return v >= 0 && v <= max && v == (double)(uint64_t)v;
}
