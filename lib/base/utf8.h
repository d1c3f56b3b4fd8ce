/* UTF-8: checks, and a printable form of bytes that are perhaps not UTF-8. */
#pragma once

#include "base/str.h"

/* True: `s` is UTF-8 as RFC 3629 defines it, so without surrogates and overlong forms. */
bool mr_utf8_is_valid(struct mr_str s);
/* True: `s` contains a control character (C0, DEL or C1), or is not valid UTF-8. */
bool mr_utf8_has_control(struct mr_str s);
/* True: `s` is valid UTF-8 without control characters, of 1 to n_max bytes. */
bool mr_utf8_is_key(struct mr_str s, size_t n_max);

/* Copies `n` bytes of `p` into `out`, which has `out_bytes` bytes and gets a terminating NUL. Every
 * byte that is not printable UTF-8 becomes `\xNN`. A text that does not fit is cut between two
 * characters. */
void mr_utf8_printable(const char *p, size_t n, char *out, size_t out_bytes);
