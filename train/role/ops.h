/* The operators of training (docs/training.md): the roles `train.ps`, `train.worker`,
 * `train.scorer` and `train.exec`, and `queue.put` and `queue.close`, which feed a session. A role
 * runs on an executor thread for as long as its session, and ends soon after it was cancelled. */
#pragma once

#include "ops/registry/registry.h"

/* Adds the operators to the registry. `with_exec`: also train.exec, which starts programs. */
int mr_role_add_ops(struct mr_registry *r, bool with_exec, struct mr_error *e);
