/* Which rows of the training data this worker has. The session keeps the row plan. Worker 0 sends
 * it once, as worker 0 knows where the partitions lie. Private to train/role. */
#pragma once

#include "train/member/role.h"

struct mr_role_rows {
    struct mr_row_range *ranges; /* none: of the even split */
    uint32_t count;
};

/* Waits until it is decided. MR_ECANCELED: the role is to end. */
int mr_role_rows_get(struct mr_role *r, const struct mr_arg *x, const struct mr_arg *y,
    struct mr_role_rows *out, struct mr_error *e);
void mr_role_rows_fini(struct mr_role_rows *rows);
