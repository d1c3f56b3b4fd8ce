/* Describes the parameters of operators in words, and checks whether a call fits the descriptor of
 * an operator. ops/registry finds descriptors by name. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "ops/op.h"

/* Checks the number of positional arguments and the names of the named arguments. MR_EINVAL: there
 * are too many arguments, or the error text names one that is missing, unknown or given twice. */
int mr_op_check_call(const struct mr_op_desc *op, uint32_t positional_count,
    const struct mr_str *names, uint32_t names_count, struct mr_error *e);

/* Return the bounds on the number of positional arguments. */
uint32_t mr_op_args_min(const struct mr_op_desc *op);
uint32_t mr_op_args_max(const struct mr_op_desc *op); /* UINT32_MAX: any number */

/* Appends in words what a parameter takes, such as "int or list". */
void mr_op_takes_words(uint32_t takes, struct mr_buf *out);
