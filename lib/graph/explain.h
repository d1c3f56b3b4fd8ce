/* Queries on a finished graph: the node of a key, and why a key is in the graph or not. */
#pragma once

#include "base/buf.h"
#include "graph/graph.h"

/* Returns the node of a key, or MR_NODE_NONE. The first call builds an index of 8 to 16 bytes for
 * each node, so only one thread at a time may call this function for a graph. */
uint32_t mr_graph_find(struct mr_graph *g, struct mr_str key);

/* True: the key was submitted and then culled, because no target needs it. */
bool mr_graph_was_culled(struct mr_graph *g, struct mr_str key);

/* Finds a path from `node` to a target that needs it, which is the reason why the node is in the
 * graph. The path begins with `node`, and is cut after nodes_max nodes. Returns the number of nodes
 * written. */
uint32_t mr_graph_path_to_target(
    const struct mr_graph *g, uint32_t node, uint32_t *nodes, uint32_t nodes_max);

/* Appends a sentence that tells why a key is in the graph or not: it is a target, it feeds target
 * "z" through "y", it was culled, or it was never defined (with the nearest key). */
void mr_graph_explain_key(struct mr_graph *g, struct mr_str key, struct mr_buf *out);
