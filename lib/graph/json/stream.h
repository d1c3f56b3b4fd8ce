/* Reads a job in JSON while its pieces arrive. An entry is one key of the object "tasks" or "dsk",
 * and the key's value. Each entry gets its node of the graph at once. A simple entry (fast_path.h)
 * that refers only to known keys is also read at once. The result equals the result of reading the
 * whole text. A text with parameters, loops, errors, or escapes in its keys is kept and read as a
 * whole at the end. */
#pragma once

#include "graph/json/json.h"

struct mr_json_stream;

/* Makes a stream; `parallel` is lent until mr_json_stream_end. */
struct mr_json_stream *mr_json_stream_new(const struct mr_graph_parallel *parallel);
void mr_json_stream_free(struct mr_json_stream **a);
/* Takes the next piece. The catalogue has the operators that are known at the time of the call. */
void mr_json_stream_feed(
    struct mr_json_stream *a, const struct mr_graph_catalogue *catalogue, struct mr_buf *piece);
/* To be called after the last piece. Makes the graph of the whole text, with the same result as
 * mr_graph_from_json. Afterwards the stream can only be freed. */
int mr_json_stream_end(struct mr_json_stream *a, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);

/* Makes a stream whose limits are smaller than the default ones. */
struct mr_json_stream *mr_json_stream_new_within(const struct mr_json_limits *limits);
