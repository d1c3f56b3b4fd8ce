/* The operator train.exec. */
#pragma once

#include "ops/op.h"

extern const struct mr_op_desc mr_train_exec_op;
