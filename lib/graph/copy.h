/* Another graph of the same shape: the nodes, edges, order and options of one that was checked,
 * with other values at some places of its arguments. Knows nothing of how the places were found. */
#pragma once

#include "graph/graph.h"

struct mr_graph_spot {  /* one item of the arguments that is replaced */
    uint32_t at, bytes; /* in g->args; ascending, within one entry of args_at */
    uint32_t value;     /* which */
};

struct mr_graph_fill {
    const struct mr_graph_spot *spots;
    uint32_t spots_count;
    const struct mr_str *values; /* packs: one item each, never a container */
    struct mr_str params;        /* of the job, instead of its own */
};

/* How many bytes its arguments will have, all together and of one node at most. */
uint64_t mr_graph_fill_bytes(
    const struct mr_graph *g, const struct mr_graph_fill *f, uint64_t *largest);
/* They must be less than 4 GiB. */
struct mr_graph *mr_graph_copy(const struct mr_graph *g, const struct mr_graph_fill *f);
/* A hash of kinds, ops, edges and loops: of all but keys, values and options. */
uint64_t mr_graph_shape(const struct mr_graph *g);
