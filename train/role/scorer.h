/* The operator train.scorer. */
#pragma once

#include "ops/op.h"

extern const struct mr_op_desc mr_train_scorer_op;
