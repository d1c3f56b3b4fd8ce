/* PNG pictures of tensors: height × width grey, height × width × 3 colour. u8 and bool as they are,
 * any other type scaled from its smallest to its largest finite element or from the given range. */
#pragma once

#include "store/object/format/format.h"

#define MR_PNG_SIDE_MAX 65535
#define MR_PNG_ELEMENTS_MAX ((uint64_t)1 << 28)

int mr_png_export(const struct mr_tensor *t, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e);
