/* The operator `exec` runs a program, without a shell. The operator exists only with --allow-exec.
 * The program gets the descriptors 0 to 2, the declared environment variables, and limits. It has a
 * process group of its own, which is killed as a whole. A task may run more than once; the variable
 * MILLRACE_TASK tells the program which attempt it belongs to. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/op.h"
#include "store/object/tensor.h"

const struct mr_op_desc *mr_exec_op(void);
