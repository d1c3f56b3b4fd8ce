/* Reads entries slice by slice (slice.h), from one text or from pieces of it. Private to
 * lib/graph/json. */
#pragma once

#include "graph/json/internal.h"
#include "graph/json/slice.h"

struct mr_json_piece { /* a slice with its text */
    struct mr_str text;
    struct mr_json_slice slice;
    struct mr_str last_key;
    uint32_t first; /* the node of its first entry */
};

/* Reads one slice at a time, in memory that is reused for the next. */
struct mr_json_slicer {
    struct mr_json *j;
    char *copy; /* of a slice between braces; the parser works in place */
    size_t copy_room;
    void *pool; /* for the parsed values */
    size_t pool_room;
};

int mr_json_sliced_entries(
    struct mr_json *j, struct mr_str text, const struct mr_json_slices *split);

struct mr_json_estimate;
/* The estimate of the slices that have a "for". */
int mr_json_sliced_estimate(struct mr_json *j, struct mr_json_estimate *x, struct mr_str text,
    const struct mr_json_slices *split);

struct mr_json_piece mr_json_piece_of(
    struct mr_str text, const struct mr_json_slices *split, uint32_t slice, uint32_t first);
/* Adds the keys of a simple slice as the next nodes. */
int mr_json_slice_keys(struct mr_json_slicer *s, struct mr_str text,
    const struct mr_json_slices *split, const struct mr_json_slice *slice);
/* Reads slices on the builder's threads. The keys of all slices must have nodes. */
int mr_json_read_parallel(
    struct mr_json_slicer *s, const struct mr_json_piece *pieces, uint32_t count);
void mr_json_slicer_fini(struct mr_json_slicer *s);

/* Parses a slice as an object, in memory that the next call reuses. NULL: it is malformed. */
yyjson_val *mr_json_parse_slice(struct mr_str text, const struct mr_json_slice *slice, char **copy,
    size_t *copy_room, void **pool, size_t *pool_room);
