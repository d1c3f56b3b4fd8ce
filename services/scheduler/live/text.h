/* Texts for states that people watch. */
#pragma once

#include "base/str.h"

/* Copies `text` into `out` so that JSON needs no escapes: control characters, quotes and
 * backslashes become "?". A text that does not fit is cut and ends in "...". If `text` is valid
 * UTF-8, so is `out`. */
void mr_live_text(struct mr_str text, char *out, size_t out_bytes);
