/* A segment of events begins with a copy of the events of present workers and unfinished jobs, so
 * an event may be read twice. Only the first ACCEPTED event of a job counts: a later one may lack
 * the client's name. But the first one lacks the namespace if an earlier version wrote it. */
#include "services/scheduler/history/cluster_past.h"

#include "base/alloc.h"
#include "base/time.h"

#include <stdlib.h>

void mr_cluster_past_init(struct mr_cluster_past *p)
{
    *p = (struct mr_cluster_past){0};
    mr_trace_names_init(&p->workers);
    mr_trace_names_init(&p->clients);
    mr_trace_names_init(&p->spaces);
    (void)mr_trace_names_number(&p->spaces, MR_STR(""));
    mr_index_init(&p->by_id, 64);
}

void mr_cluster_past_fini(struct mr_cluster_past *p)
{
    mr_trace_names_fini(&p->workers);
    mr_trace_names_fini(&p->clients);
    mr_trace_names_fini(&p->spaces);
    mr_index_fini(&p->by_id);
    mr_release(p->events);
    mr_release(p->jobs);
}

static bool id_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_cluster_past *p = ctx;
    return p->jobs[item].id.v == *(const uint64_t *)key;
}

static uint64_t id_hash(const void *ctx, uint32_t item)
{
    const struct mr_cluster_past *p = ctx;
    return mr_hash_u64(p->jobs[item].id.v);
}

struct mr_past_job *mr_cluster_past_job(struct mr_cluster_past *p, mr_job_id id)
{
    uint32_t at = mr_index_find(&p->by_id, mr_hash_u64(id.v), id_eq, p, &id.v);
    if (at != MR_INDEX_NONE) return &p->jobs[at];
    if (p->jobs_count == p->jobs_room) {
        uint32_t more = MR_MAX(64u, p->jobs_room * 2);
        p->jobs = mr_grow(p->jobs, p->jobs_room * sizeof *p->jobs, more * sizeof *p->jobs);
        p->jobs_room = more;
    }
    p->jobs[p->jobs_count] = (struct mr_past_job){.id = id};
    mr_index_add(&p->by_id, mr_hash_u64(id.v), p->jobs_count, id_hash, p);
    return &p->jobs[p->jobs_count++];
}

static void worker_event(struct mr_cluster_past *p, const struct mr_trace_event *e)
{
    if (p->events_count == p->events_room) {
        uint32_t more = MR_MAX(64u, p->events_room * 2);
        p->events =
            mr_grow(p->events, p->events_room * sizeof *p->events, more * sizeof *p->events);
        p->events_room = more;
    }
    p->events[p->events_count++] = (struct mr_past_worker_event){.kind = e->kind,
        .worker = mr_trace_names_number(&p->workers, e->name),
        .slots = e->slots,
        .processors = e->processors,
        .at = e->at,
        .since = e->since,
        .incarnation = e->incarnation};
}

static void on_event(void *ctx, const struct mr_trace_event *e)
{
    struct mr_cluster_past *p = ctx;
    struct mr_past_job *j;
    switch (e->kind) {
    case MR_TRACE_EVENT_BEGAN:
    case MR_TRACE_EVENT_JOINED:
    case MR_TRACE_EVENT_GONE:
    case MR_TRACE_EVENT_PAUSED: worker_event(p, e); break;
    case MR_TRACE_EVENT_ACCEPTED:
        j = mr_cluster_past_job(p, e->job);
        if (!j->name_space) j->name_space = mr_trace_names_number(&p->spaces, e->name_space);
        if (j->submitted) break;
        j->submitted = e->since;
        j->accepted = e->at;
        j->client = mr_trace_names_number(&p->clients, e->name);
        break;
    case MR_TRACE_EVENT_OVER:
        j = mr_cluster_past_job(p, e->job);
        j->over = e->since ? e->since : e->at;
        j->told = e->at;
        break;
    }
}

void mr_cluster_past_read(struct mr_cluster_past *p, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_past_range *range)
{
    const mr_job_id *s = range->segments;
    for (uint32_t i = 0; i < range->count; i++) {
        bool is_early = i + 1 < range->count && s[i + 1].v < range->from / MR_SECOND;
        if (is_early || s[i].v > range->until / MR_SECOND) continue;
        struct mr_trace_cursor *c = mr_trace_cursor_open(source, view, s[i]);
        struct mr_str block;
        while (mr_trace_cursor_next(c, &block))
            (void)mr_trace_events_decode(block, on_event, p);
        mr_trace_cursor_close(&c);
    }
}

static int by_submission(const void *a, const void *b)
{
    const struct mr_past_job *x = a, *y = b;
    if (x->submitted != y->submitted) return x->submitted < y->submitted ? -1 : 1;
    return x->id.v < y->id.v ? -1 : x->id.v > y->id.v;
}

void mr_cluster_past_select(struct mr_cluster_past *p, uint64_t from, uint64_t until)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->jobs_count; i++) {
        const struct mr_past_job *j = &p->jobs[i];
        /* a job without a submission was submitted before the segments that were read */
        if (!j->submitted || j->submitted >= until || (j->over && j->told < from)) continue;
        p->jobs[kept++] = *j;
    }
    p->jobs_count = kept;
    if (kept) qsort(p->jobs, kept, sizeof *p->jobs, by_submission);
}
