/* UTF-8: checks, and a printable form of bytes that may not be UTF-8. */
#pragma once

#include "base/str.h"

bool mr_utf8_is_valid(struct mr_str s);    /* RFC 3629: no surrogates, no overlong forms */
bool mr_utf8_has_control(struct mr_str s); /* C0, DEL or C1; `s` must be valid UTF-8 */
bool mr_utf8_is_key(
    struct mr_str s, size_t n_max); /* valid UTF-8 without control characters, 1 to n_max bytes */

/* Copies `n` bytes of `p` into `out`, which has `out_bytes` bytes and gets a terminating NUL. Every
 * byte that is not printable UTF-8 becomes `\xNN`. A text that does not fit is cut between two
 * characters. */
void mr_utf8_printable(const char *p, size_t n, char *out, size_t out_bytes);
