/* The operator train.ps. */
#pragma once

#include "ops/op.h"

extern const struct mr_op_desc mr_train_ps_op;
