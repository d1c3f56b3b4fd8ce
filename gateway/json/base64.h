/* Base64 (RFC 4648) as proto3 JSON wants it. Encoding uses the standard alphabet with padding.
 * Decoding accepts both alphabets, with or without padding. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

void mr_base64_encode(struct mr_str bytes, struct mr_buf *out);
/* MR_EINVAL: the text is not base64 */
int mr_base64_decode(struct mr_str text, struct mr_buf *out);
