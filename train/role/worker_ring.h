/* A training worker under the rule `allreduce`: a rank. */
#pragma once

#include "train/role/trainee.h"

/* Trains until the role has to end (MR_ECANCELED), or until an error. */
int mr_trainee_reduce(struct mr_trainee *t, struct mr_error *e);
