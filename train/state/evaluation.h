/* Scores of parameters on held-out data. */
#pragma once

#include "train/member/role.h"

struct mr_evaluation;

/* Opens set `set` ("validation", "test") of the role's data. `examples_max`: limit of the examples;
 * 0: all. */
int mr_evaluation_open(struct mr_role *r, const char *set, uint64_t examples_max,
    struct mr_evaluation **out, struct mr_error *e);
void mr_evaluation_close(struct mr_evaluation **x);
/* Scores the parameters. MR_ECANCELED: the role has to stop, which is checked between two
 * batches. */
int mr_evaluation_score(
    struct mr_evaluation *x, const float *params, struct mr_nn_score *out, struct mr_error *e);
/* Checks the parameters. MR_ERANGE: a parameter is infinite or not a number. Training cannot
 * recover from such parameters, because every later version has them, too. */
int mr_evaluation_check_params(
    const struct mr_nn_model *m, const float *params, uint64_t version, struct mr_error *e);
