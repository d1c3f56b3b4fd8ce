/* The families (ops/family.h) of the operators on numbers, containers, collections, tables, texts,
 * pictures and digits. */
#pragma once

#include "ops/family.h"

const struct mr_op_desc *mr_scalar_ops(uint32_t *count);
const struct mr_op_desc *mr_container_ops(uint32_t *count);
const struct mr_op_desc *mr_text_ops(uint32_t *count);
const struct mr_op_desc *mr_collection_ops(uint32_t *count);
const struct mr_op_desc *mr_image_ops(uint32_t *count);
const struct mr_op_desc *mr_table_ops(uint32_t *count);
const struct mr_op_desc *mr_digits_ops(uint32_t *count);
