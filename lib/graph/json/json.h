/* Graphs from JSON, in the canonical notation or in Dask's (dsk); document.c describes both. Equal
 * jobs become equal graphs in either notation. */
#pragma once

#include "graph/build/builder.h"

/* Makes a graph: parses, expands loops, checks and builds. The error names the key or field at
 * fault, or line and column of malformed JSON. */
int mr_graph_from_json(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);

/* Like mr_graph_from_json, but frees the text as early as possible, which saves memory for a job of
 * a million tasks. The buffer is empty afterwards, also after an error. `parallel` (or NULL) is
 * lent for the call. */
int mr_graph_from_json_buf(struct mr_buf *text, const struct mr_graph_catalogue *catalogue,
    const struct mr_graph_parallel *parallel, struct mr_graph **out, struct mr_error *e);

struct mr_json_limits {
    uint32_t nodes_max;    /* at most MR_TASKS_MAX */
    size_t args_bytes_max; /* bytes of all arguments and values in MessagePack */
    /* Bytes of a slice. A text of four times this size or more is parsed in slices. */
    uint32_t slice_bytes;
    const struct mr_graph_parallel *parallel; /* lends threads that read slices, too; NULL: none */
};

int mr_graph_from_json_within(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    const struct mr_json_limits *limits, struct mr_graph **out, struct mr_error *e);
