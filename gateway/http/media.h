/* Content types and codings: comparison and negotiation (RFC 9110, 8.3 and 12.5). */
#pragma once

#include "base/str.h"

/* True: `type` is the media type of a Content-Type header. Parameters and upper or lower case do
 * not matter. */
bool mr_media_is(struct mr_str header, const char *type);

/* Returns the index of the offer that an Accept header prefers: the offer with the highest q, and
 * of equal ones the first. -1: the header accepts none of them. An empty header accepts all. */
int mr_media_pick(struct mr_str accept, const char *const *offers, size_t offers_count);

/* True: an Accept-Encoding header accepts this coding, by its name or by `*`. An absent header
 * accepts none. */
bool mr_media_takes(struct mr_str accept_encoding, const char *coding);
