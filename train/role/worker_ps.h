/* A training worker of a session with parameter servers: the rules `async` and `sync`. */
#pragma once

#include "train/role/trainee.h"

/* Trains until the session ends (MR_OK), or returns an error. */
int mr_trainee_push(struct mr_trainee *t, struct mr_error *e);
