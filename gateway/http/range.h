/* Parts of an answer and whether a client has it already (RFC 9110, 13 and 14). Texts in, facts
 * out. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_range {
    uint64_t from; /* of a suffix: how many bytes from the end */
    uint64_t to;   /* the last byte, UINT64_MAX: to the end; of no suffix */
    bool is_suffix;
};

/* One range of bytes. False for several, for other units and for what is no range: the header Range
 * is ignored then. */
bool mr_range_parse(struct mr_str header, struct mr_range *out);
/* What of `total` bytes it means. False: none of them (416). */
bool mr_range_within(const struct mr_range *r, uint64_t total, uint64_t *from, uint64_t *n);

/* Is the tag (with its quotes) in an If-None-Match header? Weak tags are the same as strong ones.
 */
bool mr_etag_is_known(struct mr_str if_none_match, const char *tag);
