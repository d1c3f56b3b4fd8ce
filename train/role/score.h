/* What may be scored, and scores as JSON, appended to a buffer that begins with "{". Private to
 * train/role. */
#pragma once

#include "base/buf.h"
#include "train/role/internal.h"

void mr_score_number(struct mr_buf *out, const char *name, double v);
/* The loss by its name, and the accuracy. */
void mr_score_fields(struct mr_buf *out, const struct mr_role_plan *p, const struct mr_nn_score *s);
/* "data": "drawn", when some of what this role reads was drawn as none was given. */
void mr_score_data(struct mr_buf *out, const struct mr_role *r);

/* MR_ERANGE: a number of the parameters is not finite, and no later version will have it finite. */
int mr_role_check_params(
    const struct mr_nn_model *m, const float *params, uint64_t version, struct mr_error *e);
