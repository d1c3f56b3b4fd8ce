/* Compression of answers with gzip. */
#pragma once

#include "base/buf.h"

/* Bytes; a smaller body hardly shrinks. */
#define MR_GZIP_BYTES_MIN ((size_t)1 << 10)
/* Bytes; compressing a larger body would block its HTTP thread too long. */
#define MR_GZIP_BYTES_MAX ((size_t)8 << 20)

/* Appends the compressed form of `in`. False: nothing is appended, because `in` is too small, too
 * large, or does not become smaller. */
bool mr_gzip(struct mr_str in, struct mr_buf *out);
