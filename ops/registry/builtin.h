/* The table of all families of built-in operators. */
#pragma once

#include "ops/family.h"

const mr_op_family *mr_op_families(uint32_t *count);
