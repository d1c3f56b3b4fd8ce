/* Scores as JSON: fields of an object, appended to a buffer that begins with "{". */
#pragma once

#include "base/buf.h"
#include "train/member/role.h"

/* Appends a number. Infinities and NaN, which JSON lacks, become the texts "Infinity", "-Infinity"
 * and "NaN". */
void mr_score_number(struct mr_buf *out, const char *name, double v);
/* Appends two fields: the mean loss, named after the loss function, and "accuracy". */
void mr_score_fields(struct mr_buf *out, const struct mr_role_plan *p, const struct mr_nn_score *s);
/* Appends `"data": "drawn"` if some of the role's data are generated test data, else nothing. */
void mr_score_data(struct mr_buf *out, const struct mr_role *r);
