/* A training worker of a session with parameter servers: the rules `async` and `sync`. */
#pragma once

#include "train/role/trainee.h"

/* Trains until the role has to end (MR_ECANCELED), or until an error. */
int mr_trainee_push(struct mr_trainee *t, struct mr_error *e);
