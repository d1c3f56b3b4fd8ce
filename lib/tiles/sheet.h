/* A sheet is a summary of the spans of one block of a trace: how much time each slot spent on each
 * operator in each bucket. The width of the buckets is a power of two of ns. It is chosen such that
 * a slot usually ran about ten spans in a bucket. Times are exact to 1/4096 of a bucket.
 *
 * A sheet has a few tenths of a byte for each span. So a picture of millions of spans can be drawn
 * from their sheets much faster than from the spans. */
#pragma once

#include "tiles/picture.h"

struct mr_tile_span { /* the part of a span that a timeline shows */
    uint64_t from, until;
    uint32_t lane;
    uint16_t name;
};

struct mr_tile_piece { /* time of one lane on one name */
    uint32_t lane;
    uint16_t name;
    uint16_t share; /* time in each of the buckets, in 1/4096 of a bucket */
    uint64_t bucket;
    uint64_t buckets; /* number of buckets; more than one only with a share of 4096 */
};

struct mr_tile_sheet {
    unsigned bits; /* a bucket has 2^bits ns and begins at a multiple of its width */
    uint64_t from, until;
    uint32_t spans;
    struct mr_tile_piece *pieces; /* by lane, bucket and name */
    uint32_t count, room;
};

/* Makes the sheet of some spans, at least one. The sheet's memory is used again if it is not
 * empty. */
void mr_tile_sheet_make(
    struct mr_tile_sheet *sheet, const struct mr_tile_span *spans, uint32_t count);
void mr_tile_sheet_fini(struct mr_tile_sheet *sheet);
/* Converts a piece of a sheet with 2^bits ns a bucket. */
struct mr_tile_time mr_tile_piece_time(const struct mr_tile_piece *piece, unsigned bits);
