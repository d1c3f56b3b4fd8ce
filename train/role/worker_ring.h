/* A training worker under the rule `allreduce`: a rank. */
#pragma once

#include "train/role/trainee.h"

/* Trains until the session ends (MR_OK), or returns an error. */
int mr_trainee_reduce(struct mr_trainee *t, struct mr_error *e);
