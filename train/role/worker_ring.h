/* A training worker under the rule `allreduce`: a rank. */
#pragma once

#include "train/role/trainee.h"

/* Returns when the session ends, or with an error. */
int mr_trainee_reduce(struct mr_trainee *t, struct mr_error *e);
