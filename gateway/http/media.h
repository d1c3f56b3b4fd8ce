/* Content types: is it this one, and which of ours does a client want. */
#pragma once

#include "base/str.h"

/* Is the type of a Content-Type header `type`? Parameters and case do not matter. */
bool mr_media_is(struct mr_str header, const char *type);

/* Which of `offers` an Accept header likes best (q, then their order); -1: none. An empty header
 * likes all. */
int mr_media_pick(struct mr_str accept, const char *const *offers, size_t offers_count);

/* Does an Accept-Encoding header take this coding, by its name or by `*`? Without a header: no. */
bool mr_media_takes(struct mr_str accept_encoding, const char *coding);
