/* The operator train.worker. */
#pragma once

#include "ops/op.h"

extern const struct mr_op_desc mr_train_worker_op;
