/* A job in JSON that comes in pieces, read while the next ones come: its entries get their nodes,
 * and what is plain in them (fast_path.h) and refers to keys that are there already is read at
 * once. The outcome is that of the whole text. What does not suit - parameters, loops, keys with
 * escapes, anything malformed - is kept and read as a whole at the end. */
#pragma once

#include "graph/json/json.h"

struct mr_json_ahead;

/* `parallel` is lent until the end. */
struct mr_json_ahead *mr_json_ahead_new(const struct mr_graph_parallel *parallel);
void mr_json_ahead_free(struct mr_json_ahead **a);
/* The next piece, which is taken. The catalogue says which ops there are at the time. */
void mr_json_ahead_feed(
    struct mr_json_ahead *a, const struct mr_graph_catalogue *catalogue, struct mr_buf *piece);
/* All has come: what mr_graph_from_json makes of it. Of no use afterwards but to be freed. */
int mr_json_ahead_end(struct mr_json_ahead *a, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);

/* The same within narrower limits than those of any job. */
struct mr_json_ahead *mr_json_ahead_new_within(const struct mr_json_limits *limits);
