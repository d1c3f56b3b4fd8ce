/* Reads the entries of the JSON object "tasks", the tasks of a job, slice by slice (slice.h), from
 * one text or from pieces of it. Private to lib/graph/json. */
#pragma once

#include "graph/json/internal.h"
#include "graph/json/slice.h"

struct mr_json_piece { /* a slice with the text that it lies in */
    struct mr_str text;
    struct mr_json_slice slice;
    struct mr_str last_key;
    uint32_t first; /* the node of the slice's first entry */
};

/* Reads one slice at a time. All slices use the same memory, one after the other. */
struct mr_json_slicer {
    struct mr_json *j;
    /* A copy of the slice, with "{" before it and "}" after it. The parser changes the copy. */
    char *copy;
    size_t copy_room;
    void *pool; /* memory of the parsed values */
    size_t pool_room;
};

int mr_json_sliced_entries(
    struct mr_json *j, struct mr_str text, const struct mr_json_slices *split);

struct mr_json_estimate;
/* Adds the entries of every slice that may have a "for" (not is_plain) to the estimate
 * (estimate.h). A slice that is too large is skipped; reading it fails later. */
int mr_json_sliced_estimate(struct mr_json *j, struct mr_json_estimate *x, struct mr_str text,
    const struct mr_json_slices *split);

struct mr_json_piece mr_json_piece_of(
    struct mr_str text, const struct mr_json_slices *split, uint32_t slice, uint32_t first);
/* Adds the keys of a slice as the next nodes of the builder s->j->b. The slice's is_plain must be
 * true (slice.h). */
int mr_json_slice_keys(struct mr_json_slicer *s, struct mr_str text,
    const struct mr_json_slices *split, const struct mr_json_slice *slice);
/* Reads slices on the threads that were lent to the builder s->j->b. The keys of all slices must
 * have nodes already. */
int mr_json_read_parallel(
    struct mr_json_slicer *s, const struct mr_json_piece *pieces, uint32_t count);
void mr_json_slicer_fini(struct mr_json_slicer *s);

/* Parses a slice as an object, in memory that the next call reuses. NULL: the slice is
 * malformed. */
yyjson_val *mr_json_parse_slice(struct mr_str text, const struct mr_json_slice *slice, char **copy,
    size_t *copy_room, void **pool, size_t *pool_room);
