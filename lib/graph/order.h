/* Cull and order: from references to the canonical order. Knows only numbers. */
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

/* What comes out: `order` lists the kept nodes, `rank` tells each node's position in it, or
 * UINT32_MAX for what was culled. Or else `cycle` is a cycle, each node feeding on the next. Freed
 * by mr_order_fini. */
struct mr_order {
    uint32_t *order;
    uint32_t *rank;
    uint32_t kept;
    uint32_t *cycle;
    uint32_t cycle_count;
};

/* Culls to the targets and orders depth first: of a node's inputs, the one that needs the most
 * values alive at once is made first (Sethi and Ullman), and what can be made and lets a value go
 * is made at once. Time n + e·log(inputs of one node); no recursion. Answers false on a cycle,
 * also among what would be culled. */
bool mr_order_make(const struct mr_order_graph *g, struct mr_order *out);
void mr_order_fini(struct mr_order *o);
