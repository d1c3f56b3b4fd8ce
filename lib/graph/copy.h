/* Copies a checked graph and replaces values in its arguments. Nodes, edges, order and options
 * stay. Used for templates. */
#pragma once

#include "graph/graph.h"

struct mr_graph_placeholder { /* one item of the arguments that is replaced */
    uint32_t at, bytes;       /* in g->args; ascending, each inside one entry of args_at */
    uint32_t value;           /* index in mr_graph_fill.values */
};

struct mr_graph_fill {
    const struct mr_graph_placeholder *placeholders;
    uint32_t placeholders_count;
    const struct mr_str *values; /* MessagePack: one item each, never a container */
    struct mr_str params;        /* the copy's job.params */
};

/* How many bytes the copy's arguments will have; *largest: those of one node at most. */
uint64_t mr_graph_fill_bytes(
    const struct mr_graph *g, const struct mr_graph_fill *f, uint64_t *largest);
/* The arguments of the copy have to be smaller than 4 GiB. */
struct mr_graph *mr_graph_copy(const struct mr_graph *g, const struct mr_graph_fill *f);
/* A hash of kinds, operators, edges and loops, without keys, values and options. */
uint64_t mr_graph_shape(const struct mr_graph *g);
