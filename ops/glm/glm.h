/* The families of operators that fit generalized linear models. */
#pragma once

#include "ops/family.h"

const struct mr_op_desc *mr_glm_ops(uint32_t *count);
const struct mr_op_desc *mr_glm_part_ops(uint32_t *count);
const struct mr_op_desc *mr_glm_model_ops(uint32_t *count);
