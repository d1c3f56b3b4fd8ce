/* Collects the answer to a question about a trace, span by span: a page of a timeline, sums by
 * operator, or the last span of one task. No I/O and no clock. Memory is bounded by the page, not
 * by the trace. */
#pragma once

#include "base/index.h"
#include "store/meta/trace/codec.h"

enum mr_trace_want_kind { MR_TRACE_TIMELINE, MR_TRACE_PROFILE, MR_TRACE_TASK };

struct mr_trace_want {
    enum mr_trace_want_kind kind;
    uint64_t after_ns;  /* TIMELINE: spans that end after this time are wanted */
    uint32_t spans_max; /* TIMELINE: limit of spans, at least 1 */
    uint32_t index;     /* TASK: the task whose last span is wanted */
};

struct mr_trace_names {
    struct mr_index index;
    struct mr_str *names; /* owned texts */
    uint32_t count, room;
};

/* sums of one operator; until mr_trace_gather_finish sorts `rows`, the index of a row is the
 * operator's number in `ops` */
struct mr_trace_row {
    uint32_t op;
    uint64_t tasks, wall_ns, cpu_ns, queue_ns, bytes;
};

struct mr_trace_gather {
    struct mr_trace_want want;
    struct mr_trace_names ops, workers; /* op_id and worker_id of `spans` are indexes into these */
    /* TIMELINE: after mr_trace_gather_finish, sorted by end. TASK: at most one span */
    struct mr_trace_span *spans;
    uint32_t count, room;
    uint64_t matched;
    bool more;
    /* PROFILE: after mr_trace_gather_finish, the longest time first */
    struct mr_trace_row *rows;
    uint32_t rows_room;
    uint32_t last_op;
    uint64_t first_ns, last_ns, cpu_ns;
};

void mr_trace_gather_init(struct mr_trace_gather *g, const struct mr_trace_want *want);
void mr_trace_gather_fini(struct mr_trace_gather *g);
bool mr_trace_gather_wants(void *gather, const struct mr_trace_block *block);
void mr_trace_gather_span(void *gather, const struct mr_trace_span *span);
void mr_trace_gather_finish(struct mr_trace_gather *g);
