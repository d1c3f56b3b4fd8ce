/* Graphs in JSON: the canonical form and the dsk dialect, see docs of the notation in json.c. What
 * comes out is the same graph for both. */
#pragma once

#include "graph/builder.h"

/* Parses, expands, checks and builds. The error names the key or field at fault; for malformed
 * JSON also line and column. The text is outside bytes and is only read. */
int mr_graph_from_json(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);

/* The same within narrower bounds than base/limits.h has. */
int mr_graph_from_json_within(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    uint32_t nodes_max, size_t args_bytes_max, struct mr_graph **out, struct mr_error *e);
