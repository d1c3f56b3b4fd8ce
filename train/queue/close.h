/* The operator queue.close. */
#pragma once

#include "ops/op.h"

extern const struct mr_op_desc mr_queue_close_op;
