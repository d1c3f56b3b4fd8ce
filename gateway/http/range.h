/* The headers Range and If-None-Match (RFC 9110, 13 and 14). No I/O. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_range {
    /* The first byte. For a suffix ("bytes=-500"): the number of bytes. */
    uint64_t from;
    /* The last byte; UINT64_MAX: to the end. Unused for a suffix. */
    uint64_t to;
    bool is_suffix;
};

/* Reads one range of bytes. False: the header has several ranges, another unit or another form. The
 * caller then ignores the header, as RFC 9110 allows. */
bool mr_range_parse(struct mr_str header, struct mr_range *out);
/* Applies the range to a body of `total` bytes. False: the range has no byte of the body (status
 * 416). */
bool mr_range_within(const struct mr_range *r, uint64_t total, uint64_t *from, uint64_t *n);

/* True: an If-None-Match header names the tag (with its quotes), or is "*". The comparison is weak:
 * W/"a" names "a" too. */
bool mr_etag_is_known(struct mr_str if_none_match, const char *tag);
