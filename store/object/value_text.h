/* Describes values in words, for people. */
#pragma once

#include "store/object/value.h"

#define MR_VALUE_SUMMARY_MAX 512

/* Writes a summary such as "f32[60000,784] 179.4 MiB", "table[891 rows, 12 columns] 80.1 KiB" or
 * "int 42". */
void mr_value_summary(const struct mr_value *v, char out[MR_VALUE_SUMMARY_MAX]);
