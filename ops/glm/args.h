/* Arguments of the operators of generalized linear models; each fails in words. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/glm/state.h"
#include "ops/op.h"
#include "store/object/tensor.h"

/* A state, in memory of the call: it may be written to. */
int mr_glm_state(
    struct mr_op_call *call, const struct mr_arg *arg, const char *name, struct mr_glm *out);
/* The numbers of a one-dimensional f64 tensor, copied. */
int mr_glm_numbers_of(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    double **numbers, uint64_t *count);
/* x as rows: contiguous f64 is borrowed, anything else copied. `chunk` is for the error. */
int mr_glm_rows(
    struct mr_op_call *call, const struct mr_arg *x, int64_t chunk, struct mr_glm_rows *out);
/* A number a row; null: NULL. */
int mr_glm_vector(struct mr_op_call *call, const struct mr_arg *arg, const char *name,
    int64_t chunk, uint64_t rows, const double **out);
/* Not more columns than the fit can take. */
int mr_glm_columns_check(struct mr_op_call *call, const struct mr_glm_head *h, uint64_t columns);
