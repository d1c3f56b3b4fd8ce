/* The families of built-in operators: each file of operators gives its descriptors through one
 * function, and registry/builtin.c lists them. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "ops/op.h"
#include "store/object/tensor.h"

typedef const struct mr_op_desc *(*mr_op_family)(uint32_t *count);

const mr_op_family *mr_op_families(uint32_t *count);

const struct mr_op_desc *mr_scalar_ops(uint32_t *count);
const struct mr_op_desc *mr_container_ops(uint32_t *count);
const struct mr_op_desc *mr_elementwise_ops(uint32_t *count);
const struct mr_op_desc *mr_array_shape_ops(uint32_t *count);
const struct mr_op_desc *mr_array_reduce_ops(uint32_t *count);
const struct mr_op_desc *mr_array_moments_ops(uint32_t *count);
const struct mr_op_desc *mr_nn_ops(uint32_t *count);
const struct mr_op_desc *mr_image_ops(uint32_t *count);
const struct mr_op_desc *mr_table_ops(uint32_t *count);
const struct mr_op_desc *mr_digits_ops(uint32_t *count);
const struct mr_op_desc *mr_collection_ops(uint32_t *count);
const struct mr_op_desc *mr_text_ops(uint32_t *count);
const struct mr_op_desc *mr_array_encode_ops(uint32_t *count);
const struct mr_op_desc *mr_array_linalg_ops(uint32_t *count);
const struct mr_op_desc *mr_array_create_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_fold_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_libsvm_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_linear_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_metrics_ops(uint32_t *count);
const struct mr_op_desc *mr_ml_search_ops(uint32_t *count);
const struct mr_op_desc *mr_nn_fit_ops(uint32_t *count);
const struct mr_op_desc *mr_glm_ops(uint32_t *count);
const struct mr_op_desc *mr_glm_model_ops(uint32_t *count);

/* For the tables of descriptors. */
#define MR_OP_ROW(op_name, op_flags, op_params, op_cost_ns, op_run, op_result, op_summary)         \
    {                                                                                              \
        .abi = MR_OP_ABI, .flags = (op_flags), .name = (op_name), .summary = (op_summary),         \
        .result = (op_result), .params = (op_params), .params_count = MR_ARRAY_LEN(op_params),     \
        .cost_ns = (op_cost_ns), .run = (op_run)                                                   \
    }
