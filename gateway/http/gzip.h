/* Answers made small. */
#pragma once

#include "base/buf.h"

#define MR_GZIP_BYTES_MIN ((size_t)1 << 10) /* less is not worth it */
#define MR_GZIP_BYTES_MAX ((size_t)8 << 20) /* more would keep others of the thread waiting */

/* `in` as gzip; false, and nothing is added, when it does not become smaller. */
bool mr_gzip(struct mr_str in, struct mr_buf *out);
