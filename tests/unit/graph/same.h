/* Compares two graphs. The graphs may differ in which tasks share the memory of equal arguments. */
#pragma once

#include "graph/graph.h"

static inline bool same_inputs(const struct mr_graph *a, const struct mr_graph *b, uint32_t v)
{
    uint32_t n = 0, m = 0;
    const uint32_t *x = mr_graph_inputs(a, v, &n), *y = mr_graph_inputs(b, v, &m);
    return n == m && (!n || !memcmp(x, y, n * sizeof *x));
}

static inline bool same_op(const struct mr_graph *a, const struct mr_graph *b, uint32_t v)
{
    return a->kind[v] != MR_NODE_TASK || mr_str_eq(a->ops[a->op[v]], b->ops[b->op[v]]);
}

static inline bool same_graph(const struct mr_graph *a, const struct mr_graph *b)
{
    bool same = a->nodes_count == b->nodes_count && a->culled_count == b->culled_count &&
                a->targets_count == b->targets_count && !a->hash == !b->hash &&
                !memcmp(a->targets, b->targets, a->targets_count * sizeof *a->targets) &&
                mr_str_eq(a->job.name, b->job.name) &&
                mr_str_eq(a->job.name_space, b->job.name_space);
    for (uint32_t v = 0; same && v < a->nodes_count; v++)
        same = a->kind[v] == b->kind[v] && mr_str_eq(mr_graph_key(a, v), mr_graph_key(b, v)) &&
               same_op(a, b, v) && mr_str_eq(mr_graph_args(a, v), mr_graph_args(b, v)) &&
               same_inputs(a, b, v) && (!a->hash || mr_graph_hash_eq(a->hash[v], b->hash[v]));
    return same;
}
