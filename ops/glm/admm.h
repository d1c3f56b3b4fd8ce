/* Consensus ADMM: the local problem of one chunk of rows, and the common step. The common
 * coefficients are z (mr_glm.w). Each chunk has coefficients x and scaled duals u of its own. */
#pragma once

#include "ops/glm/partial.h"
#include "ops/glm/state.h"

/* Returns the number of doubles of the parameter `room` of mr_glm_local. Its parameter `work` has
 * mr_glm_work_bytes(columns, true) bytes. */
size_t mr_glm_local_numbers(uint32_t columns);
struct mr_glm_found {
    double *point;      /* memory of the caller for the x of the chunk */
    double loss, wrong; /* members of struct mr_glm_sums: sums over the chunk's rows, at z */
    bool stuck;         /* true: no progress from z is possible, because of rounding */
};

/* Writes to found->point the x that minimises
 *
 *   loss of these rows / total weight + rho / 2 |x - (z - u)|^2
 *
 * where |.| is the length in the metric if the fit has one. Returns false if the task is cancelled,
 * else true. */
bool mr_glm_local(const struct mr_glm *g, const struct mr_glm_rows *rows, const double *u,
    void *work, double *room, struct mr_glm_found *found, bool (*is_cancelled)(void *ctx),
    void *ctx);
/* mr_glm_step calls this function if the solver is admm, except in the first step of a fit. */
int mr_glm_admm_step(struct mr_glm *g, struct mr_glm_partial *p, double *room, struct mr_error *e);
