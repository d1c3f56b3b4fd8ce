/* Reads the arguments of the operators of generalized linear models. On failure each function
 * records an error text. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/glm/state.h"
#include "ops/op.h"
#include "store/object/tensor.h"

/* Makes a copy of a state in memory of the call. The operator may change the copy. */
int mr_glm_state(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_glm *out);
/* Makes a copy of the numbers of a one-dimensional f64 tensor. */
int mr_glm_numbers_of(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    double **numbers, uint64_t *count);
/* Reads x as rows of f64. A contiguous f64 tensor is borrowed; any other argument is converted to a
 * copy. `chunk` is for error texts. */
int mr_glm_rows(
    struct mr_op_call *call, const struct mr_arg *x, int64_t chunk, struct mr_glm_rows *out);
/* Reads one number for each row. If the argument is null, `*out` stays as it is. */
int mr_glm_vector(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    int64_t chunk, uint64_t rows, const double **out);
/* Checks the number of columns. MR_ELIMIT: the solver of the fit does not accept so many. */
int mr_glm_columns_check(struct mr_op_call *call, const struct mr_glm_head *h, uint64_t columns);
