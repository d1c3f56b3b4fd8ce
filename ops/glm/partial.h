/* A *partial*: what one chunk of rows, or a sum of chunks, answers to a state. It is a flat f64
 * tensor and may come from outside: `open` checks it. */
#pragma once

#include "base/err.h"
#include "ops/glm/kernel.h"

struct mr_glm_partial_head {
    double magic;
    double columns;
    double rows;
    double weight;
    double saturated;
    double least; /* weight above 0; 0: no row */
    double offset;
    double wrong;
    double loss;
    double hessian; /* 1: it is there */
    double entries; /* chunks; with `points`, each as (number, vector) */
    double points;
    double stuck; /* chunks that found no way to their own point */
};

#define MR_GLM_PARTIAL_HEAD (sizeof(struct mr_glm_partial_head) / sizeof(double))

struct mr_glm_partial {
    struct mr_glm_partial_head *h;
    uint32_t columns;
    uint32_t entries;
    double *gradient;
    double *hessian; /* packed; NULL: none */
    double *points;  /* NULL: none */
};

size_t mr_glm_partial_numbers(const struct mr_glm_partial_head *h);
void mr_glm_partial_lay_out(struct mr_glm_partial *p, double *numbers);
int mr_glm_partial_open(
    double *numbers, size_t count, struct mr_glm_partial *out, struct mr_error *e);
/* Adds `from` to `to`, whose points have room and begin to be filled at *entry. */
void mr_glm_partial_add(
    struct mr_glm_partial *to, const struct mr_glm_partial *from, uint32_t *entry);
