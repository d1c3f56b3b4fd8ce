/* Culls and orders nodes. A node is only a number here. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>

struct mr_order_graph {
    uint32_t count;              /* nodes, at most 2^31 */
    const uint32_t *input_at;    /* by node: index of the first input in `inputs` */
    const uint32_t *input_count; /* by node: number of inputs */
    const uint32_t *inputs;
    uint32_t inputs_count;
    const uint32_t *targets;
    uint32_t targets_count;
};

/* The result of mr_order_make, freed by mr_order_fini. `order` lists the nodes that are kept.
 * `rank` is the position of each node in `order`; UINT32_MAX: culled. If the graph has a cycle,
 * only `cycle` is set: each node in it has the next node as an input. */
struct mr_order {
    uint32_t *order;
    uint32_t *rank;
    uint32_t kept;
    uint32_t *cycle;
    uint32_t cycle_count;
};

/* Keeps the nodes that the targets need and orders them depth first. Among the inputs of a node,
 * the input that needs the most values at the same time comes first (Sethi and Ullman). A node
 * whose inputs are made comes at once if making it releases a value. Takes O(n + e·log k) time for
 * n nodes with e inputs in all and at most k inputs each, without recursion. False: there is a
 * cycle, perhaps among nodes that would be culled. */
bool mr_order_make(const struct mr_order_graph *g, struct mr_order *out);
void mr_order_fini(struct mr_order *o);
