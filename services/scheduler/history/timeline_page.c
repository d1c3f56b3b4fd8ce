/* Selects spans for two answers. An explanation needs the last span of one task, and a timeline a
 * page of spans.
 *
 * A page of a timeline has the spans that end first after a given time. A bounded max-heap by end
 * time selects them: a span that ends later than the top of a full heap is refused. So a trace of
 * any size costs the memory of one page. Spans that end at the same time as the page's last span
 * belong to the page, because the next page begins after that time. */
#include "services/scheduler/history/timeline_page.h"

#include "base/alloc.h"

#include <stdlib.h>

/* limit of spans that end at the same time; in practice a few for each slot */
#define TIES_MAX 1024

void mr_trace_gather_init(struct mr_trace_gather *g, const struct mr_trace_want *want)
{
    *g = (struct mr_trace_gather){.want = *want};
    mr_trace_names_init(&g->ops);
    mr_trace_names_init(&g->workers);
}

void mr_trace_gather_fini(struct mr_trace_gather *g)
{
    mr_trace_names_fini(&g->ops);
    mr_trace_names_fini(&g->workers);
    mr_release(g->spans);
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
        /* All spans of the block end after this page. If only some of them are wanted, `more` may
         * promise a page that is then empty. */
        g->matched += block->count;
        return false;
    case MR_TRACE_TASK:
        return block->index_min <= g->want.index && g->want.index <= block->index_max;
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
    to->op_id = mr_trace_names_number(&g->ops, span->op);
    to->worker_id = mr_trace_names_number(&g->workers, span->worker);
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

static bool is_wanted(const struct mr_trace_want *want, const struct mr_trace_span *s)
{
    const struct mr_trace_filter *f = want->filter;
    if (!s->started || s->finished <= want->after_ns) return false;
    if (want->from_ns && s->finished <= want->from_ns) return false;
    if (want->until_ns && s->started >= want->until_ns) return false;
    if (!f) return true;
    bool is_worker = !f->workers_count, is_slot = !f->slots_count;
    for (size_t i = 0; i < f->workers_count && !is_worker; i++)
        is_worker = mr_str_eq(s->worker, mr_str(f->workers[i]));
    for (size_t i = 0; i < f->slots_count && !is_slot; i++)
        is_slot = s->slot == f->slots[i];
    return is_worker && is_slot;
}

static void timeline_span(struct mr_trace_gather *g, const struct mr_trace_span *span)
{
    if (!is_wanted(&g->want, span)) return;
    g->matched++;
    if (g->count < heap_max(g)) {
        put_named(g, slot_for_one(g), span);
        sift_up(g->spans, g->count - 1);
    } else if (is_before(span, &g->spans[0])) {
        put_named(g, &g->spans[0], span);
        sift_down(g->spans, g->count);
    }
}

void mr_trace_gather_span(void *gather, const struct mr_trace_span *span)
{
    struct mr_trace_gather *g = gather;
    switch (g->want.kind) {
    case MR_TRACE_TIMELINE: timeline_span(g, span); break;
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

void mr_trace_gather_finish(struct mr_trace_gather *g)
{
    if (g->want.kind != MR_TRACE_TIMELINE || !g->count) return;
    qsort(g->spans, g->count, sizeof *g->spans, by_end);
    uint32_t n = MR_MIN(g->count, g->want.spans_max);
    while (n < g->count && g->spans[n].finished == g->spans[n - 1].finished)
        n++;
    g->count = n;
    g->more = g->matched > n;
}
