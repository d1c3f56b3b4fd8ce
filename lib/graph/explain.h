/* Questions about a finished graph: what needs what, where is a key, why is something not there. */
#pragma once

#include "base/buf.h"
#include "graph/graph.h"

/* The node of a key, or MR_NODE_NONE. The first call builds an index (8-16 B a node), so
 * that a graph has one thread at a time here. */
uint32_t mr_graph_find(struct mr_graph *g, struct mr_str key);

/* Was the key submitted, but is needed by no target? */
bool mr_graph_was_culled(struct mr_graph *g, struct mr_str key);

/* All nodes that `node` needs (ancestors) or that need it (descendants), itself excluded,
 * ascending, at most `nodes_max` of them; `*more` tells that there were more. Returns how many. */
uint32_t mr_graph_ancestors(
    const struct mr_graph *g, uint32_t node, uint32_t *nodes, uint32_t nodes_max, bool *more);
uint32_t mr_graph_descendants(
    const struct mr_graph *g, uint32_t node, uint32_t *nodes, uint32_t nodes_max, bool *more);

/* A path from `node` to the target that needs it, node first: how it got into the graph. Returns
 * its length, cut at nodes_max. */
uint32_t mr_graph_path_to_target(
    const struct mr_graph *g, uint32_t node, uint32_t *nodes, uint32_t nodes_max);

/* One sentence on why a key is in the graph or not: is a target, feeds target "z" through "y",
 * was culled, was never defined (with the nearest key). */
void mr_graph_explain_key(struct mr_graph *g, struct mr_str key, struct mr_buf *out);
