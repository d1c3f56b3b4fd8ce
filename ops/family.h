/* The header that every file of operators includes. A *family* is the table of the operators of one
 * file. Each family has a function (mr_op_family) that returns the table's descriptors and their
 * number. The header of each folder declares these functions, and ops/registry/builtin.c lists them
 * all. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/op.h"
#include "store/object/tensor.h"

typedef const struct mr_op_desc *(*mr_op_family)(uint32_t *count);

/* A row of a family's table. */
#define MR_OP_ROW(op_name, op_flags, op_params, op_cost_ns, op_run, op_result, op_summary)         \
    {                                                                                              \
        .abi = MR_OP_ABI, .flags = (op_flags), .name = (op_name), .summary = (op_summary),         \
        .result = (op_result), .params = (op_params), .params_count = MR_ARRAY_LEN(op_params),     \
        .cost_ns = (op_cost_ns), .run = (op_run)                                                   \
    }
