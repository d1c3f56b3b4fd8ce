/* A heap has the jobs whose trace is open, by the time of their next span. Of each open job, the
 * bytes of one page of blocks (store/meta/trace/reader.c) and one decoded span are in memory. */
#include "services/scheduler/history/span_merge.h"

#include "base/alloc.h"

struct open_job {
    uint32_t number;
    struct mr_trace_cursor *cursor;
    struct mr_trace_decoder *decoder;             /* of the present block */
    struct mr_trace_local_names op_of, worker_of; /* of the present block */
    struct mr_trace_span span;                    /* the next span */
};

struct mr_span_merge {
    const struct mr_trace_source *source;
    const struct mr_trace_view *view;
    const struct mr_cluster_past *past;
    uint64_t from;
    uint32_t whole;
    uint32_t next_job; /* the first job that was not opened yet */
    struct open_job **heap;
    uint32_t heap_count, heap_room;
    bool is_taken; /* the span on top of the heap was given to the caller */
    struct mr_trace_names ops, workers;
    uint64_t spans;
    bool is_away;
};

struct mr_span_merge *mr_span_merge_open(const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_cluster_past *past, uint64_t from,
    uint32_t whole)
{
    struct mr_span_merge *m = mr_alloc(sizeof *m);
    m->source = source;
    m->view = view;
    m->past = past;
    m->from = from;
    m->whole = whole;
    mr_trace_names_init(&m->ops);
    mr_trace_names_init(&m->workers);
    return m;
}

static void job_close(struct mr_span_merge *m, struct open_job *j)
{
    m->is_away = m->is_away || mr_trace_cursor_is_away(j->cursor);
    mr_trace_cursor_close(&j->cursor);
    mr_trace_decoder_free(&j->decoder);
    mr_release(j->op_of.of);
    mr_release(j->worker_of.of);
    mr_release(j);
}

void mr_span_merge_close(struct mr_span_merge **mp)
{
    struct mr_span_merge *m = *mp;
    *mp = NULL;
    if (!m) return;
    while (m->heap_count)
        job_close(m, m->heap[--m->heap_count]);
    mr_release(m->heap);
    mr_trace_names_fini(&m->ops);
    mr_trace_names_fini(&m->workers);
    mr_release(m);
}

/* ---- the heap -------------------------------------------------------------------------------- */

static uint64_t time_of(const struct open_job *j)
{
    return j->span.accounted;
}

static bool is_before(const struct open_job *a, const struct open_job *b)
{
    uint64_t x = time_of(a), y = time_of(b);
    return x != y ? x < y : a->number < b->number;
}

static void sift_down(struct mr_span_merge *m)
{
    struct open_job *top = m->heap[0];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= m->heap_count) break;
        if (child + 1 < m->heap_count && is_before(m->heap[child + 1], m->heap[child])) child++;
        if (!is_before(m->heap[child], top)) break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = top;
}

static void heap_add(struct mr_span_merge *m, struct open_job *j)
{
    if (m->heap_count == m->heap_room) {
        uint32_t more = MR_MAX(16u, m->heap_room * 2);
        m->heap = mr_grow(m->heap, m->heap_room * sizeof(void *), more * sizeof(void *));
        m->heap_room = more;
    }
    uint32_t at = m->heap_count++;
    for (; at && is_before(j, m->heap[(at - 1) / 2]); at = (at - 1) / 2)
        m->heap[at] = m->heap[(at - 1) / 2];
    m->heap[at] = j;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Begins the next block of the job. False: there are no more blocks. */
static bool block_next(struct mr_span_merge *m, struct open_job *j)
{
    struct mr_trace_block head;
    struct mr_str block;
    while (mr_trace_cursor_next(j->cursor, &block)) {
        if (mr_trace_block_read(block, &head)) continue;
        if (j->number != m->whole && head.finished_max < m->from) continue;
        mr_trace_local_clear(&j->op_of);
        mr_trace_local_clear(&j->worker_of);
        if (!mr_trace_decoder_begin(j->decoder, block)) return true;
    }
    return false;
}

/* Decodes the job's next span. False: the job has no more spans. */
static bool span_next(struct mr_span_merge *m, struct open_job *j)
{
    struct mr_trace_span *s = &j->span;
    for (;;) {
        while (!mr_trace_decoder_next(j->decoder, s))
            if (!block_next(m, j)) return false;
        if (j->number == m->whole)
            m->spans++;
        else if (s->finished < m->from && s->accounted < m->from)
            continue;
        s->op_id = mr_trace_local_number(&j->op_of, s->op_id, &m->ops, s->op);
        s->worker_id = mr_trace_local_number(&j->worker_of, s->worker_id, &m->workers, s->worker);
        return true;
    }
}

static void job_open(struct mr_span_merge *m, uint32_t number)
{
    struct open_job *j = mr_alloc(sizeof *j);
    j->number = number;
    j->cursor = mr_trace_cursor_open(m->source, m->view, m->past->jobs[number].id);
    j->decoder = mr_trace_decoder_new();
    if (span_next(m, j))
        heap_add(m, j);
    else
        job_close(m, j);
}

/* Moves on from the span that was given to the caller. */
static void top_pass(struct mr_span_merge *m)
{
    struct open_job *j = m->heap[0];
    if (!span_next(m, j)) {
        m->heap[0] = m->heap[--m->heap_count];
        job_close(m, j);
    }
    if (m->heap_count > 1) sift_down(m);
}

const struct mr_trace_span *mr_span_merge_next(struct mr_span_merge *m, uint32_t *job)
{
    if (m->is_taken) top_pass(m);
    m->is_taken = false;
    while (m->next_job < m->past->jobs_count &&
           (!m->heap_count || m->past->jobs[m->next_job].submitted <= time_of(m->heap[0])))
        job_open(m, m->next_job++);
    if (!m->heap_count) return NULL;
    m->is_taken = true;
    *job = m->heap[0]->number;
    return &m->heap[0]->span;
}

const struct mr_trace_names *mr_span_merge_ops(const struct mr_span_merge *m)
{
    return &m->ops;
}

const struct mr_trace_names *mr_span_merge_workers(const struct mr_span_merge *m)
{
    return &m->workers;
}

uint64_t mr_span_merge_spans(const struct mr_span_merge *m)
{
    return m->spans;
}

bool mr_span_merge_is_away(const struct mr_span_merge *m)
{
    return m->is_away;
}
