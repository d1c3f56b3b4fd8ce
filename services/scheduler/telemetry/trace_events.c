/* A block is written when it has BLOCK_BYTES or is a second old. A segment begins with
 * the workers and jobs that are present. It ends when it has SEGMENT_BYTES, and four times the
 * bytes of these first events. */
#include "services/scheduler/telemetry/trace_events.h"

#include "base/alloc.h"
#include "base/index.h"
#include "base/time.h"
#include "base/unconst.h"
#include "store/meta/trace/codec.h"

#define BLOCK_BYTES ((size_t)32 << 10)
#define BLOCK_AGE MR_SECOND
#define SEGMENT_BYTES ((size_t)256 << 10)
#define SEGMENTS_MAX 128u

struct table { /* the JOINED events of present workers, or the ACCEPTED events of unfinished jobs */
    struct mr_trace_event *events; /* texts are owned */
    uint32_t count, room;
    struct mr_index index; /* by job, or by the worker's incarnation */
};

struct mr_trace_events {
    struct mr_trace_log *log;
    struct table workers, jobs;
    struct mr_buf block;
    mr_time due;      /* when the block is written; MR_NEVER: it has no event */
    uint32_t segment; /* second in which the present segment began; 0: there is none */
    size_t segment_bytes, segment_least;
    uint64_t latest; /* the latest time of an event */
};

/* ---- what is present ------------------------------------------------------------------------- */

static uint64_t key_of(const struct mr_trace_event *e)
{
    return e->job.v ? e->job.v : e->incarnation;
}

static bool key_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct table *t = ctx;
    return key_of(&t->events[item]) == *(const uint64_t *)key;
}

static uint64_t key_hash(const void *ctx, uint32_t item)
{
    const struct table *t = ctx;
    return mr_hash_u64(key_of(&t->events[item]));
}

static uint32_t table_find(const struct table *t, uint64_t key)
{
    return mr_index_find(&t->index, mr_hash_u64(key), key_eq, t, &key);
}

static struct mr_str text_copy(struct mr_str text)
{
    return mr_str_of(mr_copy(text.n ? text.p : "", MR_MAX(text.n, (size_t)1)), text.n);
}

static void texts_release(struct mr_trace_event *e)
{
    mr_release(mr_unconst(e->name.p));
    mr_release(mr_unconst(e->name_space.p));
}

static void table_remove(struct table *t, uint64_t key)
{
    uint32_t at = table_find(t, key);
    if (at == MR_INDEX_NONE) return;
    (void)mr_index_remove(&t->index, key_hash(t, at), at);
    texts_release(&t->events[at]);
    uint32_t last = --t->count;
    if (at == last) return;
    (void)mr_index_remove(&t->index, key_hash(t, last), last);
    t->events[at] = t->events[last];
    mr_index_add(&t->index, key_hash(t, at), at, key_hash, t);
}

static void table_add(struct table *t, const struct mr_trace_event *e)
{
    table_remove(t, key_of(e));
    if (t->count == t->room) {
        uint32_t more = MR_MAX(16u, t->room * 2);
        t->events = mr_grow(t->events, t->room * sizeof *e, more * sizeof *e);
        t->room = more;
    }
    t->events[t->count] = *e;
    t->events[t->count].name = text_copy(e->name);
    t->events[t->count].name_space = text_copy(e->name_space);
    mr_index_add(&t->index, mr_hash_u64(key_of(e)), t->count, key_hash, t);
    t->count++;
}

static void table_fini(struct table *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        texts_release(&t->events[i]);
    mr_release(t->events);
    mr_index_fini(&t->index);
}

static void remember(struct mr_trace_events *t, const struct mr_trace_event *e)
{
    switch (e->kind) {
    case MR_TRACE_EVENT_BEGAN:
    case MR_TRACE_EVENT_PAUSED: break;
    case MR_TRACE_EVENT_JOINED: table_add(&t->workers, e); break;
    case MR_TRACE_EVENT_GONE: table_remove(&t->workers, e->incarnation); break;
    case MR_TRACE_EVENT_ACCEPTED: table_add(&t->jobs, e); break;
    case MR_TRACE_EVENT_OVER: table_remove(&t->jobs, e->job.v); break;
    }
}

/* ---- segments -------------------------------------------------------------------------------- */

static void block_write(struct mr_trace_events *t)
{
    mr_job_id id = mr_trace_segment_id(t->segment);
    (void)mr_trace_log_add(t->log, id, mr_buf_str(&t->block), 0);
    t->segment_bytes += t->block.n;
    mr_trace_events_begin(&t->block, id);
}

static void segment_begin(struct mr_trace_events *t)
{
    mr_job_id oldest;
    uint32_t second = (uint32_t)(t->latest / MR_SECOND);
    t->segment = MR_MAX(second, t->segment + 1);
    t->segment_bytes = 0;
    while (mr_trace_log_segments(t->log, &oldest, 1) >= SEGMENTS_MAX)
        mr_trace_log_forget(t->log, oldest);
    mr_trace_events_begin(&t->block, mr_trace_segment_id(t->segment));
    for (uint32_t i = 0; i < t->workers.count; i++)
        mr_trace_events_add(&t->block, &t->workers.events[i]);
    for (uint32_t i = 0; i < t->jobs.count; i++) {
        if (t->block.n >= BLOCK_BYTES) block_write(t);
        mr_trace_events_add(&t->block, &t->jobs.events[i]);
    }
    t->segment_least = MR_MAX(SEGMENT_BYTES, 4 * (t->segment_bytes + t->block.n));
}

void mr_trace_events_flush(struct mr_trace_events *t)
{
    if (t->due == MR_NEVER) return;
    t->due = MR_NEVER;
    block_write(t);
}

void mr_trace_events_take(
    struct mr_trace_events *t, mr_time now, const struct mr_trace_event *event)
{
    t->latest = MR_MAX(t->latest, event->at);
    if (!t->segment || t->segment_bytes >= t->segment_least) segment_begin(t);
    mr_trace_events_add(&t->block, event);
    remember(t, event);
    if (t->due == MR_NEVER) t->due = mr_time_after(now, BLOCK_AGE);
    if (t->block.n >= BLOCK_BYTES) mr_trace_events_flush(t);
}

mr_time mr_trace_events_deadline(const struct mr_trace_events *t)
{
    return t->due;
}

void mr_trace_events_tick(struct mr_trace_events *t, mr_time now)
{
    if (t->due <= now) mr_trace_events_flush(t);
}

struct mr_trace_events *mr_trace_events_new(struct mr_trace_log *log, uint64_t wall_ns)
{
    struct mr_trace_events *t = mr_alloc(sizeof *t);
    t->log = log;
    t->due = MR_NEVER;
    mr_buf_init(&t->block, MR_TRACE_BLOCK_BYTES_MAX);
    mr_index_init(&t->workers.index, 16);
    mr_index_init(&t->jobs.index, 16);
    const struct mr_trace_event began = {.kind = MR_TRACE_EVENT_BEGAN, .at = wall_ns};
    mr_trace_events_take(t, 0, &began);
    return t;
}

void mr_trace_events_free(struct mr_trace_events **tp)
{
    struct mr_trace_events *t = *tp;
    *tp = NULL;
    if (!t) return;
    table_fini(&t->workers);
    table_fini(&t->jobs);
    mr_buf_fini(&t->block);
    mr_release(t);
}
