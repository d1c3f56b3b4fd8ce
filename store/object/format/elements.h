/* Runs of elements as files have them made into ours, and ours on their way out. For the formats of
 * this folder. */
#pragma once

#include "store/object/format/format.h"

/* Elements with their bytes reversed, for big-endian files; width 1, 2, 4 or 8; `in` may be `out`.
 */
void mr_elements_swap(void *out, const void *in, uint64_t elements, size_t width);
/* Bytes other than 0 become 1. */
void mr_elements_to_bool(void *data, uint64_t elements);
/* All elements, row-major, into the sink: without a copy where they lie so, in pieces otherwise.
 * `swapped`: big endian. What the sink said. */
int mr_elements_write(const struct mr_tensor *t, bool swapped, struct mr_sink sink);
