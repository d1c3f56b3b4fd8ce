/* Two inboxes connect the threads: `spent` takes empty batches to the thread that reads, and `full`
 * takes batches with tasks back. An empty batch in `full` says that there are no more tasks. Until
 * the caller has that batch, only the thread uses the merge and the sums by operator. */
#include "services/scheduler/history/task_feed.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/inbox.h"
#include "host/thread.h"

/* Batches that are made when the thread starts: one is used, one is filled, and the others make up
 * for the different speeds of the two threads. */
#define BATCHES 4u

struct mr_task_feed {
    struct mr_task_feed_config config;
    struct mr_span_merge *merge;
    struct mr_op_table ops;
    uint32_t workers_told; /* number of workers whose names are in a batch */
    uint64_t read;         /* spans in the batches that the caller's thread has filled */
    struct mr_task_batch *lent;
    struct mr_inbox *full, *spent; /* of struct mr_task_batch *; NULL: there is no thread */
    struct mr_thread *thread;
};

static void batch_free(struct mr_task_batch **bp)
{
    struct mr_task_batch *b = *bp;
    *bp = NULL;
    if (!b) return;
    mr_release(b->workers);
    mr_release(b);
}

/* ---- filling batches ------------------------------------------------------------------------- */

static void item_add(struct mr_task_batch *b, const struct mr_trace_span *s, uint32_t job)
{
    uint32_t i = b->count++;
    b->items[i].worker = s->worker_id;
    b->items[i].slot = s->slot;
    b->items[i].task = (struct mr_account_task){.job = job,
        .index = s->index,
        .last_input = s->last_input,
        .op = MR_MIN(s->op_id, MR_OP_TABLE_MAX - 1),
        .ready = s->ready,
        .sent = s->sent,
        .received = s->received,
        .inputs = s->inputs,
        .started = s->started,
        .finished = s->finished,
        .accounted = s->accounted,
        .cpu_ns = s->cpu_ns,
        .input_ns = s->input_ns,
        .output_ns = s->output_ns,
        .late_ns = s->late_ns,
        .delayed_ns = s->delayed_ns,
        .room_ns = s->room_ns,
        .restore_ns = s->restore_ns,
        .training = s->training,
        .hold = s->held == MR_TRACE_HELD_MEMORY       ? MR_ACCOUNT_MEMORY
                : s->held == MR_TRACE_HELD_RESTRICTED ? MR_ACCOUNT_RESTRICTED
                                                      : 0};
}

static void worker_tell(struct mr_task_batch *b, struct mr_str name)
{
    if (b->workers_count == b->workers_room) {
        uint32_t more = MR_MAX(16u, b->workers_room * 2);
        b->workers = mr_grow(b->workers, b->workers_room * sizeof name, more * sizeof name);
        b->workers_room = more;
    }
    b->workers[b->workers_count++] = name;
}

static void batch_fill(struct mr_task_feed *f, struct mr_task_batch *b)
{
    const struct mr_trace_span *s;
    uint32_t job = 0;
    b->count = b->workers_count = 0;
    while (b->count < MR_TASK_BATCH && (s = mr_span_merge_next(f->merge, &job))) {
        item_add(b, s, job);
        if (mr_account_share_has(f->config.share, job))
            mr_op_table_add(&f->ops, MR_MIN(s->op_id, MR_OP_TABLE_MAX - 1), s);
    }
    const struct mr_trace_names *workers = mr_span_merge_workers(f->merge);
    while (f->workers_told < workers->count)
        worker_tell(b, workers->names[f->workers_told++]);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Waits for a batch. NULL: the inbox is closed. */
static struct mr_task_batch *batch_take(struct mr_inbox *from)
{
    struct mr_task_batch *b = NULL;
    while (!mr_inbox_wait_eager(from, &b, 1))
        if (mr_inbox_is_closed(from)) return NULL;
    return b;
}

/* Each inbox has room for all batches, so no push fails while the inbox is open. */
static void batch_give(struct mr_inbox *to, struct mr_task_batch **b)
{
    int err = mr_inbox_push(to, b);
    mr_assert(!err);
    *b = NULL;
}

static void run(void *ctx)
{
    struct mr_task_feed *f = ctx;
    struct mr_task_batch *b;
    for (bool is_last = false; !is_last && (b = batch_take(f->spent));) {
        batch_fill(f, b);
        is_last = !b->count;
        batch_give(f->full, &b);
    }
}

static void thread_start(struct mr_task_feed *f)
{
    f->full = mr_inbox_new(BATCHES, sizeof(struct mr_task_batch *));
    f->spent = mr_inbox_new(BATCHES, sizeof(struct mr_task_batch *));
    batch_give(f->spent, &f->lent);
    for (uint32_t i = 1; i < BATCHES; i++) {
        struct mr_task_batch *b = mr_alloc(sizeof *b);
        batch_give(f->spent, &b);
    }
    f->thread = mr_thread_start("trace-ahead", run, f);
}

/* ---- the caller ------------------------------------------------------------------------------ */

struct mr_task_feed *mr_task_feed_open(const struct mr_task_feed_config *config)
{
    struct mr_task_feed *f = mr_alloc(sizeof *f);
    f->config = *config;
    f->merge = mr_span_merge_open(
        config->source, config->view, config->past, config->from, config->target);
    f->lent = mr_alloc(sizeof *f->lent);
    return f;
}

struct mr_task_batch *mr_task_feed_next(struct mr_task_feed *f)
{
    if (!f->full && f->read >= f->config.alone_max) {
        thread_start(f);
    } else if (!f->full) {
        batch_fill(f, f->lent);
        f->read += f->lent->count;
        return f->lent->count ? f->lent : NULL;
    } else if (f->thread) {
        batch_give(f->spent, &f->lent);
    }
    if (!f->thread) return NULL; /* the last batch was taken */
    f->lent = batch_take(f->full);
    mr_assert(f->lent); /* this inbox is never closed */
    if (f->lent->count) return f->lent;
    mr_thread_join(&f->thread);
    return NULL;
}

static void inbox_free(struct mr_inbox **inbox)
{
    struct mr_task_batch *b = NULL;
    if (!*inbox) return;
    while (mr_inbox_take(*inbox, &b, 1))
        batch_free(&b);
    mr_inbox_free(inbox);
}

void mr_task_feed_close(struct mr_task_feed **fp)
{
    struct mr_task_feed *f = *fp;
    *fp = NULL;
    if (!f) return;
    if (f->thread) mr_inbox_close(f->spent);
    mr_thread_join(&f->thread);
    inbox_free(&f->full);
    inbox_free(&f->spent);
    batch_free(&f->lent);
    mr_span_merge_close(&f->merge);
    mr_op_table_fini(&f->ops);
    mr_release(f);
}

const struct mr_op_table *mr_task_feed_ops(const struct mr_task_feed *f)
{
    return &f->ops;
}

const struct mr_span_merge *mr_task_feed_merge(const struct mr_task_feed *f)
{
    return f->merge;
}
