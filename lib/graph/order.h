/* Culling and ordering of nodes, which are only numbers here. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>

struct mr_order_graph {
    uint32_t count;              /* nodes, at most 2^31 */
    const uint32_t *input_at;    /* first input of each node … */
    const uint32_t *input_count; /* … and how many */
    const uint32_t *inputs;
    uint32_t inputs_count;
    const uint32_t *targets;
    uint32_t targets_count;
};

/* `order` lists the nodes that are kept. `rank` is each node's position in it; UINT32_MAX: culled.
 * If the graph has a cycle, only `cycle` is set: each node has the next one as input. Freed by
 * mr_order_fini. */
struct mr_order {
    uint32_t *order;
    uint32_t *rank;
    uint32_t kept;
    uint32_t *cycle;
    uint32_t cycle_count;
};

/* Keeps the nodes that the targets need and orders them depth first. Of a node's inputs, the one
 * that needs the most values at the same time comes first (Sethi and Ullman). A node that is ready
 * and releases a value comes at once. Time n + e·log(inputs of one node); no recursion. False:
 * there is a cycle, possibly among nodes that would be culled. */
bool mr_order_make(const struct mr_order_graph *g, struct mr_order *out);
void mr_order_fini(struct mr_order *o);
