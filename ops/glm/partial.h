/* A *partial*: sums over one chunk of rows, or over several chunks: the loss, its gradient and, for
 * some solvers, its Hessian. The sums are taken at the trial point, the coefficients that the state
 * of a fit (state.h) evaluates next. A partial is a flat f64 tensor, small enough to travel inside
 * messages when there are few columns. A partial may come from a client, so mr_glm_partial_open
 * checks it. */
#pragma once

#include "base/err.h"
#include "ops/glm/kernel.h"

struct mr_glm_partial_head { /* members without a comment are as in mr_glm_head (state.h) */
    double magic;
    double columns;
    double rows;
    double weight;
    double saturated;
    double least; /* the smallest weight above 0; 0: no row has such a weight */
    double offset;
    double wrong;
    double loss;
    double hessian; /* 1: the Hessian is present */
    double entries; /* how many chunks the partial sums up */
    /* 1, for ADMM: for each chunk, the partial has at its end the chunk's index and its own
     * minimum, a vector of columns + 1 numbers. Else 0. */
    double points;
    double stuck; /* chunks of ADMM that made no progress towards their minimum */
};

#define MR_GLM_PARTIAL_HEAD (sizeof(struct mr_glm_partial_head) / sizeof(double))

struct mr_glm_partial {
    struct mr_glm_partial_head *h;
    uint32_t columns;
    uint32_t entries;
    double *gradient;
    double *hessian; /* the lower triangle, packed; NULL: there is no Hessian */
    double *points;  /* for ADMM: the chunks' own minima; NULL otherwise */
};

size_t mr_glm_partial_numbers(const struct mr_glm_partial_head *h);
void mr_glm_partial_lay_out(struct mr_glm_partial *p, double *numbers);
int mr_glm_partial_open(
    double *numbers, size_t count, struct mr_glm_partial *out, struct mr_error *e);
/* Adds the sums of `from` to those of `to`. For ADMM, also copies the minima in from->points to
 * to->points, which has room for them, from index `*entry` on. Adds from->entries to `*entry`. */
void mr_glm_partial_add(
    struct mr_glm_partial *to, const struct mr_glm_partial *from, uint32_t *entry);
