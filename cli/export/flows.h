/* Which values a task took from which tasks, and how long values were needed. An edge goes from a
 * task to a consumer of its value; its number is its position in `dependents`, plus 1. Memory: 24
 * bytes a node of the graph. */
#pragma once

#include "cli/export/span.h"

struct mr_export_edges { /* columns of struct mr_graph, borrowed */
    uint32_t nodes_count;
    const uint32_t *input_at, *inputs; /* inputs of a node, ascending by the node's number */
    const uint32_t *dependent_at, *dependents; /* dependents of a node, ascending */
    const unsigned char *is_target;            /* by node */
};

struct mr_export_source { /* the end of an edge at the task that made the value */
    uint64_t edge;
    uint64_t finished;
    uint32_t lane;
};

struct mr_export_flows;

/* `edges` is borrowed. `needed` is called for each value when its last consumer has ended. */
struct mr_export_flows *mr_export_flows_new(const struct mr_export_edges *edges,
    void (*needed)(void *ctx, uint64_t from, uint64_t until, uint64_t bytes), void *ctx);
/* Calls `needed` for the values that are still needed: until the end of the last span. */
void mr_export_flows_end(struct mr_export_flows *f);
void mr_export_flows_free(struct mr_export_flows **f);

struct mr_export_step {                     /* the edges of one span; lent until the next call */
    const struct mr_export_source *sources; /* edges that end at the span */
    uint32_t sources_count;
    uint64_t edges_from, edges_until; /* numbers of the edges that begin at the span */
};

/* Takes the next span. Only the first successful attempt of a task has edges. A consumer's edge
 * needs a source that was taken before and that ended before the consumer started. */
void mr_export_flows_take(struct mr_export_flows *f, const struct mr_export_span *span,
    uint32_t lane, struct mr_export_step *out);
