/* The inside of the JSON parser: entries slice by slice (slice.h), from one text or from
 * pieces of it. For its files only. */
#pragma once

#include "graph/json/internal.h"
#include "graph/json/slice.h"

struct mr_json_piece { /* a slice by itself */
    struct mr_str text;
    struct mr_json_slice slice; /* of this text */
    struct mr_str last_key;
    uint32_t first; /* node */
};

/* One slice at a time, in memory that is used again for the next. */
struct mr_json_slicer {
    struct mr_json *j;
    char *copy; /* of a slice, between braces, for the parser to work in */
    size_t copy_room;
    void *pool; /* for its values */
    size_t pool_room;
};

int mr_json_sliced_entries(
    struct mr_json *j, struct mr_str text, const struct mr_json_split *split);

/* Of its slices with a "for" in them. */
struct mr_json_estimate;
int mr_json_sliced_estimate(struct mr_json *j, struct mr_json_estimate *x, struct mr_str text,
    const struct mr_json_split *split);

struct mr_json_piece mr_json_piece_of(
    struct mr_str text, const struct mr_json_split *split, uint32_t slice, uint32_t first);
/* The keys of a plain slice, as they stand, get the next nodes. */
int mr_json_bulk_keys(struct mr_json_slicer *s, struct mr_str text,
    const struct mr_json_split *split, const struct mr_json_slice *slice);
/* Slices whose keys, and those of all others, have their nodes: read on the builder's
 * `parallel`. */
int mr_json_by_many(struct mr_json_slicer *s, const struct mr_json_piece *pieces, uint32_t count);
void mr_json_slicer_fini(struct mr_json_slicer *s);

/* A slice as an object, in memory that is used again for the next, which ends it. NULL: malformed.
 */
yyjson_val *mr_json_parse_slice(struct mr_str text, const struct mr_json_slice *slice, char **copy,
    size_t *copy_room, void **pool, size_t *pool_room);
