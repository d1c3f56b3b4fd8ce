/* Scores as JSON: fields of an object, appended to a buffer that begins with "{". */
#pragma once

#include "base/buf.h"
#include "train/member/role.h"

/* Infinities and NaN, which JSON lacks, are the texts "Infinity", "-Infinity" and "NaN". */
void mr_score_number(struct mr_buf *out, const char *name, double v);
/* The mean loss under its name, and the accuracy. */
void mr_score_fields(struct mr_buf *out, const struct mr_role_plan *p, const struct mr_nn_score *s);
/* `"data": "drawn"`, if some of the role's data are generated test data; else nothing. */
void mr_score_data(struct mr_buf *out, const struct mr_role *r);
