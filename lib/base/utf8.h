/* UTF-8: is it valid, and how to show it when it may not be. */
#pragma once

#include "base/str.h"

bool mr_utf8_is_valid(struct mr_str s);    /* RFC 3629: no surrogates, no overlong forms */
bool mr_utf8_has_control(struct mr_str s); /* C0, DEL or C1; `s` is valid UTF-8 */
bool mr_utf8_is_key(
    struct mr_str s, size_t n_max); /* valid, no control character, 1..n_max bytes */

/* Copies `n` bytes of `p` into `out` (NUL-terminated, `out_bytes` in all), with `\xNN` for every
 * byte that is not printable UTF-8, cut at a whole character when it does not fit. */
void mr_utf8_printable(const char *p, size_t n, char *out, size_t out_bytes);
