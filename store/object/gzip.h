/* Unpacks gzip files of one or more members. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

bool mr_gzip_is(struct mr_str bytes);
/* Appends the unpacked bytes to `out`. MR_ELIMIT: they exceed the ceiling of `out`. MR_EFORMAT: the
 * file is damaged or cut off. `stop` (may be NULL) is called every few milliseconds. MR_ECANCELED:
 * `stop` returned true. */
int mr_gzip_unpack(struct mr_str packed, struct mr_buf *out, bool (*stop)(void *ctx), void *ctx,
    struct mr_error *e);
