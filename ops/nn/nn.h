/* The families of operators on neural networks. */
#pragma once

#include "ops/family.h"

const struct mr_op_desc *mr_nn_ops(uint32_t *count);
const struct mr_op_desc *mr_nn_fit_ops(uint32_t *count);
