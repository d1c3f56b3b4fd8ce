/* PNG pictures of tensors: [height, width] is grey, [height, width, 3] is colour. If a range is
 * given, its ends become black and white. Without a range, elements of type u8 are written as they
 * are, a bool becomes black or white, and other types are scaled from their smallest to their
 * largest finite element. */
#pragma once

#include "store/object/format/format.h"

#define MR_PNG_SIDE_MAX 65535
#define MR_PNG_ELEMENTS_MAX ((uint64_t)1 << 28)

int mr_png_export(const struct mr_tensor *t, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e);
