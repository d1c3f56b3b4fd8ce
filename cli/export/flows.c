/* Spans come in the order of their ends, so a task's span comes before those of its consumers. */
#include "cli/export/flows.h"

#include "base/alloc.h"

struct node {
    uint64_t finished; /* end of the first successful attempt; 0: there was none yet */
    uint64_t bytes;
    uint32_t lane;
    uint32_t consumers; /* dependents without a successful attempt; a target has one more */
};

struct mr_export_flows {
    const struct mr_export_edges *edges;
    void (*needed)(void *ctx, uint64_t from, uint64_t until, uint64_t bytes);
    void *ctx;
    struct node *nodes;
    struct mr_export_source *sources;
    uint32_t sources_room;
    uint64_t until;
};

struct mr_export_flows *mr_export_flows_new(const struct mr_export_edges *edges,
    void (*needed)(void *ctx, uint64_t from, uint64_t until, uint64_t bytes), void *ctx)
{
    struct mr_export_flows *f = mr_alloc(sizeof *f);
    f->edges = edges;
    f->needed = needed;
    f->ctx = ctx;
    f->nodes = mr_alloc_array(MR_MAX(edges->nodes_count, 1u), sizeof *f->nodes);
    for (uint32_t i = 0; i < edges->nodes_count; i++)
        f->nodes[i].consumers =
            edges->dependent_at[i + 1] - edges->dependent_at[i] + (edges->is_target[i] ? 1 : 0);
    return f;
}

void mr_export_flows_free(struct mr_export_flows **fp)
{
    struct mr_export_flows *f = *fp;
    *fp = NULL;
    if (!f) return;
    mr_release(f->nodes);
    mr_release(f->sources);
    mr_release(f);
}

void mr_export_flows_end(struct mr_export_flows *f)
{
    for (uint32_t i = 0; i < f->edges->nodes_count; i++)
        if (f->nodes[i].finished && f->nodes[i].consumers && f->nodes[i].bytes)
            f->needed(f->ctx, f->nodes[i].finished, f->until, f->nodes[i].bytes);
}

/* Returns the number of the edge between a node and its dependent. The dependents are ascending. */
static uint64_t edge_of(const struct mr_export_edges *e, uint32_t node, uint32_t dependent)
{
    uint32_t low = e->dependent_at[node], high = e->dependent_at[node + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (e->dependents[middle] < dependent)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint64_t)low + 1;
}

static void source_add(
    struct mr_export_flows *f, struct mr_export_step *out, const struct mr_export_source *source)
{
    if (out->sources_count == f->sources_room) {
        uint32_t more = MR_MAX(16u, f->sources_room * 2);
        f->sources =
            mr_grow(f->sources, f->sources_room * sizeof *f->sources, more * sizeof *f->sources);
        f->sources_room = more;
    }
    f->sources[out->sources_count++] = *source;
}

static void consume(struct mr_export_flows *f, const struct mr_export_span *span,
    struct mr_export_step *out, uint32_t input)
{
    struct node *n = &f->nodes[input];
    if (!n->finished) return;
    if (n->finished <= span->started)
        source_add(f, out,
            &(struct mr_export_source){edge_of(f->edges, input, span->node), n->finished, n->lane});
    if (n->consumers && !--n->consumers && n->bytes)
        f->needed(f->ctx, n->finished, span->finished, n->bytes);
}

void mr_export_flows_take(struct mr_export_flows *f, const struct mr_export_span *span,
    uint32_t lane, struct mr_export_step *out)
{
    const struct mr_export_edges *e = f->edges;
    *out = (struct mr_export_step){0};
    f->until = MR_MAX(f->until, span->finished);
    if (span->failed || span->node >= e->nodes_count || f->nodes[span->node].finished) return;
    for (uint32_t i = e->input_at[span->node]; i < e->input_at[span->node + 1]; i++)
        consume(f, span, out, e->inputs[i]);
    struct node *n = &f->nodes[span->node];
    n->finished = MR_MAX(span->finished, (uint64_t)1);
    n->lane = lane;
    n->bytes = n->consumers ? span->nbytes : 0;
    out->sources = f->sources;
    out->edges_from = (uint64_t)e->dependent_at[span->node] + 1;
    out->edges_until = (uint64_t)e->dependent_at[span->node + 1] + 1;
}
