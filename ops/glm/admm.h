/* ADMM: what a chunk does alone, and the step that all take together. */
#pragma once

#include "ops/glm/partial.h"
#include "ops/glm/state.h"

/* Numbers of memory that a local step works in, beside mr_glm_work_bytes(columns, true). */
size_t mr_glm_local_numbers(uint32_t columns);
struct mr_glm_found {
    double *point;
    double loss, wrong; /* at z */
    bool stuck;         /* the point is z, and should not be: rounding hides the way */
};

/* argmin over x of loss of these rows / all weights + rho / 2 |x - (z - u)|^2 into `point`. |.| is
 * the metric's, if there is one. false: cancelled. */
bool mr_glm_local(const struct mr_glm *g, const struct mr_glm_rows *rows, const double *u,
    void *work, double *room, struct mr_glm_found *found, bool (*is_cancelled)(void *ctx),
    void *ctx);
/* As mr_glm_step, after the first look. */
int mr_glm_admm_step(struct mr_glm *g, struct mr_glm_partial *p, double *room, struct mr_error *e);
