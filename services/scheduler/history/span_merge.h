/* Reads the spans of several jobs side by side, in the order in which the scheduler accounted them.
 * Private to the account of a job. */
#pragma once

#include "services/scheduler/history/cluster_past.h"

struct mr_span_merge;

/* Reads the jobs of `past`, which are sorted by submission. A job's trace is opened when the merge
 * reaches the job's submission. Leaves out spans that ended before `from`, but none of the job with
 * number `whole`. The caller keeps the arguments valid until mr_span_merge_close. */
struct mr_span_merge *mr_span_merge_open(const struct mr_trace_source *source,
    const struct mr_trace_view *view, const struct mr_cluster_past *past, uint64_t from,
    uint32_t whole);
void mr_span_merge_close(struct mr_span_merge **m);
/* Returns the next span, lent until the next call, and stores the number of its job. The span's
 * op_id is a number of mr_span_merge_ops, and its worker_id is one of mr_span_merge_workers. Its
 * texts `op` and `worker` are not valid. NULL: there are no more spans. */
const struct mr_trace_span *mr_span_merge_next(struct mr_span_merge *m, uint32_t *job);
/* The names that were found so far. The texts stay valid until the close. */
const struct mr_trace_names *mr_span_merge_ops(const struct mr_span_merge *m);
const struct mr_trace_names *mr_span_merge_workers(const struct mr_span_merge *m);
/* Returns the number of spans of the job `whole` that were read. */
uint64_t mr_span_merge_spans(const struct mr_span_merge *m);
bool mr_span_merge_is_away(const struct mr_span_merge *m);
