/* The rows of the training data that this worker trains on. The session keeps the row plan, which
 * gives each worker its rows (feed/row_plan.h). If the session has no plan yet, worker 0 makes one
 * and sends it to the trainer. The session's plan never changes. */
#pragma once

#include "train/member/role.h"

struct mr_role_rows {
    struct mr_row_range *ranges; /* NULL: the rows of the even split */
    uint32_t count;
};

/* Waits until the session has a row plan, and returns this worker's rows. MR_ECANCELED: the role
 * has to end. */
int mr_role_rows_get(struct mr_role *r, const struct mr_arg *x, const struct mr_arg *y,
    struct mr_role_rows *out, struct mr_error *e);
void mr_role_rows_fini(struct mr_role_rows *rows);
