/* Reads the spans of several jobs as tasks for an account (lib/account), in the order in which the
 * scheduler accounted them, and sums them by operator. The tasks come in batches. If there are
 * many, a thread reads the next batches while the caller uses the present one: reading and decoding
 * spans takes about as much processor time as dividing the time of slots. Private to the account of
 * a job. */
#pragma once

#include "account/share.h"
#include "services/scheduler/history/op_table.h"
#include "services/scheduler/history/span_merge.h"

#define MR_TASK_BATCH 2048u

struct mr_task_feed;

struct mr_task_feed_config {
    const struct mr_trace_source *source;
    const struct mr_trace_view *view;
    const struct mr_cluster_past *past; /* only its jobs are read */
    uint64_t from;                      /* as for mr_span_merge_open */
    uint32_t target;                    /* as for mr_span_merge_open */
    /* only the spans of its own jobs are summed by operator; its sums are not read */
    const struct mr_account_share *share;
    uint64_t alone_max; /* spans that the caller's thread reads before a thread is started */
};

struct mr_task_batch {
    uint32_t count;
    /* Names of the workers that had no span before this batch. The first worker of the first batch
     * has number 0. The texts stay valid until the close. */
    struct mr_str *workers;
    uint32_t workers_count, workers_room;
    struct {
        struct mr_account_task task; /* lane and is_beside are not set */
        uint32_t worker;             /* number of the worker */
        uint32_t slot;
    } items[MR_TASK_BATCH];
};

/* `config` is copied. The caller keeps what it points to until the close. */
struct mr_task_feed *mr_task_feed_open(const struct mr_task_feed_config *config);
void mr_task_feed_close(struct mr_task_feed **f);
/* Returns the next batch, lent until the next call. The caller may change its items. NULL: there
 * are no more tasks. */
struct mr_task_batch *mr_task_feed_next(struct mr_task_feed *f);
/* The functions below are called after the last batch. */
const struct mr_op_table *mr_task_feed_ops(const struct mr_task_feed *f);
/* Returns the spans that were read, with the names of their operators. */
const struct mr_span_merge *mr_task_feed_merge(const struct mr_task_feed *f);
