/* Private to this folder: converts elements between the form in files and the form in memory. */
#pragma once

#include "store/object/format/format.h"

/* Reverses the bytes of each element, for big-endian files. `width` is 1, 2, 4 or 8; `in` may be
 * `out`. */
void mr_elements_swap(void *out, const void *in, uint64_t elements, size_t width);
/* Replaces every byte other than 0 by 1. */
void mr_elements_to_bool(void *data, uint64_t elements);
/* Writes all elements in row-major order to the sink, without a copy if they are contiguous,
 * otherwise in pieces. `swapped`: the elements are written in big-endian order. Returns the sink's
 * result. */
int mr_elements_write(const struct mr_tensor *t, bool swapped, struct mr_sink sink);
