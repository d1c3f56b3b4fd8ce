/* Collects the answer to a question about a trace, span by span: a page of a timeline, or the last
 * span of one task. No I/O and no clock. Memory is bounded by the page, not
 * by the trace. */
#pragma once

#include "services/scheduler/history/names.h"
#include "store/meta/trace/codec.h"

enum mr_trace_want_kind { MR_TRACE_TIMELINE, MR_TRACE_TASK };

struct mr_trace_filter { /* which spans are wanted; no names: of all workers, and so on */
    char **workers;
    uint32_t *slots;
    size_t workers_count, slots_count;
};

struct mr_trace_want {
    enum mr_trace_want_kind kind;
    uint64_t from_ns, until_ns; /* TIMELINE: only spans that overlap this time; 0 and 0: all */
    const struct mr_trace_filter *filter; /* TIMELINE: lent until the end; NULL: all spans */
    uint64_t after_ns;                    /* TIMELINE: spans that end after this time are wanted */
    uint32_t spans_max;                   /* TIMELINE: limit of spans, at least 1 */
    uint32_t index;                       /* TASK: the task whose last span is wanted */
};

struct mr_trace_gather {
    struct mr_trace_want want;
    struct mr_trace_names ops, workers; /* op_id and worker_id of `spans` are indexes into these */
    /* TIMELINE: after mr_trace_gather_finish, sorted by end. TASK: at most one span */
    struct mr_trace_span *spans;
    uint32_t count, room;
    uint64_t matched;
    bool more;
};

void mr_trace_gather_init(struct mr_trace_gather *g, const struct mr_trace_want *want);
void mr_trace_gather_fini(struct mr_trace_gather *g);
bool mr_trace_gather_wants(void *gather, const struct mr_trace_block *block);
void mr_trace_gather_span(void *gather, const struct mr_trace_span *span);
void mr_trace_gather_finish(struct mr_trace_gather *g);
