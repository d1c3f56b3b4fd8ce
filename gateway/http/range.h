/* The headers Range and If-None-Match (RFC 9110, 13 and 14). Pure. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_range {
    uint64_t from; /* the first byte; of a suffix ("bytes=-500"): the number of bytes */
    uint64_t to;   /* the last byte, UINT64_MAX: to the end; unused by a suffix */
    bool is_suffix;
};

/* Reads one range of bytes. False for several ranges, other units and malformed text: the header
 * is ignored then, as RFC 9110 allows. */
bool mr_range_parse(struct mr_str header, struct mr_range *out);
/* The range in a body of `total` bytes. False: it has no byte in common with it (416). */
bool mr_range_within(const struct mr_range *r, uint64_t total, uint64_t *from, uint64_t *n);

/* Does an If-None-Match header name the tag (with its quotes)? The comparison is weak: W/"a" names
 * "a" too. */
bool mr_etag_is_known(struct mr_str if_none_match, const char *tag);
