/* The operator queue.put. */
#pragma once

#include "ops/op.h"

extern const struct mr_op_desc mr_queue_put_op;
