/* A *partial*: the sums over one chunk of rows, or over several chunks, at the point that a state
 * asks about. A partial is a flat f64 tensor, small enough to travel inside messages when there are
 * few columns. It may come from a client: mr_glm_partial_open checks it. */
#pragma once

#include "base/err.h"
#include "ops/glm/kernel.h"

struct mr_glm_partial_head {
    double magic;
    double columns;
    double rows;
    double weight;
    double saturated;
    double least; /* smallest weight above 0; 0: there is no such row */
    double offset;
    double wrong;
    double loss;
    double hessian; /* 1: the Hessian is present */
    double entries; /* number of chunks; with `points`, one (chunk number, vector) for each */
    double points;
    double stuck; /* chunks of ADMM that made no progress towards their minimum */
};

#define MR_GLM_PARTIAL_HEAD (sizeof(struct mr_glm_partial_head) / sizeof(double))

struct mr_glm_partial {
    struct mr_glm_partial_head *h;
    uint32_t columns;
    uint32_t entries;
    double *gradient;
    double *hessian; /* lower triangle, packed; NULL: none */
    double *points;  /* ADMM: the chunks' own minima; NULL: none */
};

size_t mr_glm_partial_numbers(const struct mr_glm_partial_head *h);
void mr_glm_partial_lay_out(struct mr_glm_partial *p, double *numbers);
int mr_glm_partial_open(
    double *numbers, size_t count, struct mr_glm_partial *out, struct mr_error *e);
/* Adds `from` to `to`. Points are appended at *entry; `to` has room for them. */
void mr_glm_partial_add(
    struct mr_glm_partial *to, const struct mr_glm_partial *from, uint32_t *entry);
