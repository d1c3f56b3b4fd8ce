/* Makes a graph of a builder's nodes: checks them, drops (culls) those that no target needs, and
 * orders the others. */
#pragma once

#include "base/err.h"
#include "graph/graph.h"

struct mr_graph_param {
    struct mr_str name;
    bool required;
};

/* What the check of a task has to know of its operator. Each parameter can be given by position or
 * by name. */
struct mr_graph_op_info {
    const struct mr_graph_param *params; /* lent until mr_graph_build returns */
    uint32_t params_count;
    bool any_positional; /* more positional arguments than `params` are allowed */
    bool any_named;      /* named arguments that are not in `params` are allowed */
};

/* The operators that exist. The functions are called on the thread that builds. */
struct mr_graph_catalogue {
    bool (*find)(const void *ctx, struct mr_str op, struct mr_graph_op_info *out);
    /* Returns the i-th operator's name, for "did you mean" in error texts; an empty text ends the
     * list. May be NULL. */
    struct mr_str (*name_at)(const void *ctx, uint32_t i);
    const void *ctx;
};

struct mr_builder;

/* Builds a graph. Frees the builder, also after an error. A node without a definition is an alias
 * of another job's key if the job has a namespace, and an error otherwise. The error names the key
 * at fault. */
int mr_graph_build(struct mr_builder **b, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);
