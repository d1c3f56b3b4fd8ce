/* A sheet is a summary of the spans of one block of a trace: how much time each slot spent on each
 * operator in each bucket (interval of time). The width of the buckets is a power of two of ns. It
 * is chosen such that a slot usually ran about ten spans in a bucket. Times are exact to 1/4096 of
 * a bucket.
 *
 * A sheet has a few tenths of a byte for each span. So a picture of millions of spans can be drawn
 * from their sheets much faster than from the spans. */
#pragma once

#include "tiles/picture.h"

struct mr_tile_span { /* what a timeline needs of a span (store/meta/trace/codec.h) */
    uint64_t from, until;
    uint32_t lane; /* number of the slot (executor thread) */
    uint16_t name; /* number of the operator */
};

struct mr_tile_piece { /* time of one lane on one name, in one bucket or in a run of full buckets */
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
    struct mr_tile_piece *pieces; /* by lane, then by bucket */
    uint32_t count, room;
};

/* Makes the sheet of `count` spans, at least one. `sheet` is all 0, or an earlier sheet: its memory
 * is used again. */
void mr_tile_sheet_make(
    struct mr_tile_sheet *sheet, const struct mr_tile_span *spans, uint32_t count);
void mr_tile_sheet_fini(struct mr_tile_sheet *sheet);
/* Converts a piece of a sheet whose buckets have 2^bits ns. */
struct mr_tile_time mr_tile_piece_time(const struct mr_tile_piece *piece, unsigned bits);
