/* The operator `exec`: runs a program. It exists only with --allow-exec. It uses no shell. The
 * program has its own process group, which is killed as a whole, no descriptor but 0-2, only the
 * declared environment, and limits. Its effects outside are at-least-once: MILLRACE_TASK in its
 * environment tells attempts apart. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/op.h"
#include "store/object/tensor.h"

const struct mr_op_desc *mr_exec_op(void);
