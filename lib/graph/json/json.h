/* Graphs in JSON: the canonical form and the dsk dialect; json.c has the notation. What comes out
 * is the same graph for both. */
#pragma once

#include "graph/build/builder.h"

/* Parses, expands, checks and builds. The error names the key or field at fault; for malformed
 * JSON also line and column. The text is outside bytes and is only read. */
int mr_graph_from_json(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);

/* The same; the text is given up as soon as it is not needed any more (its memory counts when a
 * million tasks come at once). The buffer is empty afterwards, also after an error. `parallel` (or
 * NULL) is lent until then. */
int mr_graph_from_json_buf(struct mr_buf *text, const struct mr_graph_catalogue *catalogue,
    const struct mr_graph_parallel *parallel, struct mr_graph **out, struct mr_error *e);

struct mr_json_limits {
    uint32_t nodes_max;    /* at most MR_TASKS_MAX */
    size_t args_bytes_max; /* of all arguments and values, packed */
    uint32_t slice_bytes;  /* texts of four times that are parsed in such slices */
    const struct mr_graph_parallel *parallel; /* whose workers read slices, too; or NULL */
};

int mr_graph_from_json_within(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    const struct mr_json_limits *limits, struct mr_graph **out, struct mr_error *e);
