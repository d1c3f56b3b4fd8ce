/* Finds from which tasks a task took values, and how long each value was needed. An edge goes from
 * a task to a consumer of the task's value. The number of an edge is 1 plus the edge's index in
 * `dependents`. Memory: 24 bytes for each node of the graph. */
#pragma once

#include "cli/export/span.h"

struct mr_export_edges { /* columns of struct mr_graph, borrowed */
    uint32_t nodes_count;
    /* the inputs of node i are inputs[input_at[i]] to inputs[input_at[i + 1] - 1] */
    const uint32_t *input_at, *inputs;
    const uint32_t *dependent_at, *dependents; /* likewise the dependents; ascending for a node */
    const unsigned char *is_target;            /* by node */
};

struct mr_export_source { /* the begin of an edge: the task that made the value */
    uint64_t edge;        /* number of the edge */
    uint64_t finished;    /* end of the task */
    uint32_t lane;
};

struct mr_export_flows;

/* `edges` is borrowed. `needed` is called for each value when its last consumer has ended. */
struct mr_export_flows *mr_export_flows_new(const struct mr_export_edges *edges,
    void (*needed)(void *ctx, uint64_t from, uint64_t until, uint64_t bytes), void *ctx);
/* Calls `needed` for the values that are still needed. They count as needed until the latest end of
 * a span. */
void mr_export_flows_end(struct mr_export_flows *f);
void mr_export_flows_free(struct mr_export_flows **f);

struct mr_export_step { /* the edges of one span; lent until the next mr_export_flows_take */
    const struct mr_export_source *sources; /* edges that end at the span */
    uint32_t sources_count;
    uint64_t edges_from, edges_until; /* numbers of the edges that begin at the span */
};

/* Takes the next span. Only the first successful attempt of a task has edges. An edge also needs a
 * source whose span was taken earlier and ended before the consumer started. */
void mr_export_flows_take(struct mr_export_flows *f, const struct mr_export_span *span,
    uint32_t lane, struct mr_export_step *out);
