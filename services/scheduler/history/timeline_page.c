/* Selects spans for three answers. A profile needs one row for each operator, an explanation the
 * last span of one task, and a timeline a page of spans.
 *
 * A page of a timeline has the spans that end first after a given time. A bounded max-heap by end
 * time selects them: a span that ends later than the top of a full heap is refused. So a trace of
 * any size costs the memory of one page. Spans that end at the same time as the page's last span
 * belong to the page, because the next page begins after that time. */
#include "services/scheduler/history/timeline_page.h"

#include "base/alloc.h"
#include "base/unconst.h"

#include <stdlib.h>
#include <xxhash.h>

/* limit of spans that end at the same time; in practice a few for each slot */
#define TIES_MAX 1024

static bool name_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_trace_names *n = ctx;
    const struct mr_str *wanted = key;
    return mr_str_eq(n->names[item], *wanted);
}

static uint64_t name_hash(const void *ctx, uint32_t item)
{
    const struct mr_trace_names *n = ctx;
    return XXH3_64bits(n->names[item].p, n->names[item].n);
}

static uint32_t name_number(struct mr_trace_names *n, struct mr_str name)
{
    uint64_t hash = XXH3_64bits(name.p, name.n);
    uint32_t found = mr_index_find(&n->index, hash, name_eq, n, &name);
    if (found != MR_INDEX_NONE) return found;
    if (n->count == n->room) {
        uint32_t more = MR_MAX(16u, n->room * 2);
        n->names = mr_grow(n->names, n->room * sizeof name, more * sizeof name);
        n->room = more;
    }
    n->names[n->count] = mr_str_of(mr_copy(name.p, MR_MAX(name.n, (size_t)1)), name.n);
    mr_index_add(&n->index, hash, n->count, name_hash, n);
    return n->count++;
}

static void names_fini(struct mr_trace_names *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        mr_release(mr_unconst(n->names[i].p));
    mr_release(n->names);
    mr_index_fini(&n->index);
}

void mr_trace_gather_init(struct mr_trace_gather *g, const struct mr_trace_want *want)
{
    *g = (struct mr_trace_gather){.want = *want, .first_ns = UINT64_MAX};
    mr_index_init(&g->ops.index, 16);
    mr_index_init(&g->workers.index, 16);
}

void mr_trace_gather_fini(struct mr_trace_gather *g)
{
    names_fini(&g->ops);
    names_fini(&g->workers);
    mr_release(g->spans);
    mr_release(g->rows);
}

/* True: span `a` ends before span `b`; of two that end at the same time, index and attempt
 * decide. */
static bool is_before(const struct mr_trace_span *a, const struct mr_trace_span *b)
{
    if (a->finished != b->finished) return a->finished < b->finished;
    if (a->index != b->index) return a->index < b->index;
    return a->attempt < b->attempt;
}

static uint32_t heap_max(const struct mr_trace_gather *g)
{
    return g->want.spans_max + TIES_MAX;
}

bool mr_trace_gather_wants(void *gather, const struct mr_trace_block *block)
{
    struct mr_trace_gather *g = gather;
    switch (g->want.kind) {
    case MR_TRACE_TIMELINE:
        if (block->finished_max <= g->want.after_ns) return false;
        if (g->count < heap_max(g) || block->finished_min <= g->spans[0].finished) return true;
        g->matched += block->count; /* all spans of the block end after this page */
        return false;
    case MR_TRACE_TASK:
        return block->index_min <= g->want.index && g->want.index <= block->index_max;
    case MR_TRACE_PROFILE: return true;
    }
    return true;
}

static struct mr_trace_span *slot_for_one(struct mr_trace_gather *g)
{
    if (g->count == g->room) {
        uint32_t more = MR_MAX(64u, g->room * 2);
        g->spans = mr_grow(g->spans, g->room * sizeof *g->spans, more * sizeof *g->spans);
        g->room = more;
    }
    return &g->spans[g->count++];
}

static void put_named(
    struct mr_trace_gather *g, struct mr_trace_span *to, const struct mr_trace_span *span)
{
    *to = *span;
    to->op_id = name_number(&g->ops, span->op);
    to->worker_id = name_number(&g->workers, span->worker);
    /* both texts are lent: they are freed with the block that the span was read from */
    to->op = to->worker = (struct mr_str){0};
}

static void sift_up(struct mr_trace_span *s, uint32_t at)
{
    for (; at > 0; at = (at - 1) / 2) {
        struct mr_trace_span *up = &s[(at - 1) / 2];
        if (!is_before(up, &s[at])) return;
        struct mr_trace_span t = *up;
        *up = s[at];
        s[at] = t;
    }
}

static void sift_down(struct mr_trace_span *s, uint32_t count)
{
    for (uint32_t at = 0;;) {
        uint32_t most = at;
        for (uint32_t k = 2 * at + 1; k <= 2 * at + 2 && k < count; k++)
            if (is_before(&s[most], &s[k])) most = k;
        if (most == at) return;
        struct mr_trace_span t = s[most];
        s[most] = s[at];
        s[at] = t;
        at = most;
    }
}

static void timeline_span(struct mr_trace_gather *g, const struct mr_trace_span *span)
{
    if (!span->started || span->finished <= g->want.after_ns) return;
    g->matched++;
    if (g->count < heap_max(g)) {
        put_named(g, slot_for_one(g), span);
        sift_up(g->spans, g->count - 1);
    } else if (is_before(span, &g->spans[0])) {
        put_named(g, &g->spans[0], span);
        sift_down(g->spans, g->count);
    }
}

static void profile_span(struct mr_trace_gather *g, const struct mr_trace_span *span)
{
    if (!span->started) return;
    uint32_t op = g->last_op; /* the operator is usually the same as that of the last span */
    if (op >= g->ops.count || !mr_str_eq(g->ops.names[op], span->op))
        op = g->last_op = name_number(&g->ops, span->op);
    if (op >= g->rows_room) {
        uint32_t more = MR_MAX(16u, (op + 1) * 2);
        g->rows = mr_grow(g->rows, g->rows_room * sizeof *g->rows, more * sizeof *g->rows);
        g->rows_room = more;
    }
    struct mr_trace_row *r = &g->rows[op];
    r->op = op;
    r->tasks++;
    r->wall_ns += span->finished > span->started ? span->finished - span->started : 0;
    r->cpu_ns += span->cpu_ns;
    r->bytes += span->bytes;
    if (span->ready && span->started > span->ready) r->queue_ns += span->started - span->ready;
    g->cpu_ns += span->cpu_ns;
    g->first_ns = MR_MIN(g->first_ns, span->started);
    g->last_ns = MR_MAX(g->last_ns, span->finished);
}

void mr_trace_gather_span(void *gather, const struct mr_trace_span *span)
{
    struct mr_trace_gather *g = gather;
    switch (g->want.kind) {
    case MR_TRACE_TIMELINE: timeline_span(g, span); break;
    case MR_TRACE_PROFILE: profile_span(g, span); break;
    case MR_TRACE_TASK:
        if (span->index == g->want.index)
            put_named(g, g->count ? &g->spans[0] : slot_for_one(g), span);
        break;
    }
}

static int by_end(const void *a, const void *b)
{
    return is_before(a, b) ? -1 : is_before(b, a);
}

static int by_wall(const void *a, const void *b)
{
    const struct mr_trace_row *x = a;
    const struct mr_trace_row *y = b;
    if (!x->tasks != !y->tasks) return x->tasks ? -1 : 1; /* unused rows come last */
    if (x->wall_ns != y->wall_ns) return x->wall_ns > y->wall_ns ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

void mr_trace_gather_finish(struct mr_trace_gather *g)
{
    if (g->rows_room) qsort(g->rows, g->rows_room, sizeof *g->rows, by_wall);
    if (g->want.kind != MR_TRACE_TIMELINE || !g->count) return;
    qsort(g->spans, g->count, sizeof *g->spans, by_end);
    uint32_t n = MR_MIN(g->count, g->want.spans_max);
    while (n < g->count && g->spans[n].finished == g->spans[n - 1].finished)
        n++;
    g->count = n;
    g->more = g->matched > n;
}
