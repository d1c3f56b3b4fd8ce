/* Inline accessors of one node, for loops over all nodes. Part of graph/graph.h. The returned
 * pointers are lent until the graph is freed. */
#pragma once

#include "base/assert.h"
#include "graph/graph.h"

static inline struct mr_str mr_graph_args(
    const struct mr_graph *g, uint32_t node) /* in the form of graph/args.h */
{
    mr_assert(node < g->nodes_count);
    const uint32_t *at = &g->args_at[g->args_of[node]];
    return mr_str_of(g->args + at[0], at[1] - at[0]);
}

static inline const uint32_t *mr_graph_inputs(
    const struct mr_graph *g, uint32_t node, uint32_t *count)
{
    mr_assert(node < g->nodes_count);
    *count = g->input_at[node + 1] - g->input_at[node];
    return g->inputs + g->input_at[node];
}

static inline const uint32_t *mr_graph_dependents(
    const struct mr_graph *g, uint32_t node, uint32_t *count)
{
    mr_assert(node < g->nodes_count);
    *count = g->dependent_at[node + 1] - g->dependent_at[node];
    return g->dependents + g->dependent_at[node];
}

/* Returns the options of a node. NULL: the node has no options. */
static inline const struct mr_task_options *mr_graph_options(
    const struct mr_graph *g, uint32_t node)
{
    mr_assert(node < g->nodes_count);
    if (!g->option_of || g->option_of[node] == MR_NODE_NONE) return NULL;
    return &g->options[g->option_of[node]];
}

/* True: the task names workers or asks for resources. */
static inline bool mr_graph_is_restricted(const struct mr_graph *g, uint32_t node)
{
    const struct mr_task_options *o = mr_graph_options(g, node);
    return o && (o->workers_count || o->resources_count);
}
