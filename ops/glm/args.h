/* Reads the arguments of the operators of generalized linear models. On failure each function
 * records an error text. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/glm/state.h"
#include "ops/op.h"
#include "store/object/tensor.h"

/* A copy of a state in memory of the call, which the operator may change. */
int mr_glm_state(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_glm *out);
/* A copy of the numbers of a one-dimensional f64 tensor. */
int mr_glm_numbers_of(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    double **numbers, uint64_t *count);
/* x as rows of f64. Contiguous f64 is borrowed, anything else is converted to a copy. `chunk` is
 * for error texts. */
int mr_glm_rows(
    struct mr_op_call *call, const struct mr_arg *x, int64_t chunk, struct mr_glm_rows *out);
/* One number for each row; the argument null gives NULL. */
int mr_glm_vector(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    int64_t chunk, uint64_t rows, const double **out);
/* MR_ELIMIT: more columns than the solver of the fit accepts. */
int mr_glm_columns_check(struct mr_op_call *call, const struct mr_glm_head *h, uint64_t columns);
