/* The operator `exec`: runs a program. Only there with --allow-exec. No shell; its own process
 * group, killed whole; every descriptor but 0-2 closed; only the declared environment; limits. Its
 * effects outside are at-least-once: MILLRACE_TASK in its environment tells attempts apart. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/op.h"
#include "store/object/tensor.h"

const struct mr_op_desc *mr_exec_op(void);
