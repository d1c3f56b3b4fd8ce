/* Copies a checked graph and replaces values in its arguments. Nodes, edges, order and options
 * stay. A template (graph/template/template.h) makes its graphs in this way. */
#pragma once

#include "graph/graph.h"

struct mr_graph_placeholder { /* one item of the arguments that is replaced */
    /* Offset and size of the item in the graph's `args`. The item lies inside the arguments of one
     * node. The offsets of placeholders ascend. */
    uint32_t at, bytes;
    uint32_t value; /* index in mr_graph_fill.values */
};

struct mr_graph_fill {
    const struct mr_graph_placeholder *placeholders;
    uint32_t placeholders_count;
    const struct mr_str *values; /* MessagePack: one item each, never a container */
    struct mr_str params;        /* the copy's job.params */
};

/* Returns the size in bytes of all arguments of the copy. Sets `*largest` to an upper bound for the
 * arguments of one node. */
uint64_t mr_graph_fill_bytes(
    const struct mr_graph *g, const struct mr_graph_fill *f, uint64_t *largest);
/* Copies a graph. The arguments of the copy must be smaller than 4 GiB. */
struct mr_graph *mr_graph_copy(const struct mr_graph *g, const struct mr_graph_fill *f);
/* Returns a hash of the nodes' kinds and operators, the edges and the loops. Keys, values and
 * options do not count. */
uint64_t mr_graph_shape(const struct mr_graph *g);
