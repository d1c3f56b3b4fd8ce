/* Batches from arrays. A feed serves one worker's share of the rows, in an order that is drawn for
 * each epoch from (seed, epoch, worker). A batch is found by its step number alone, so a worker
 * that replaces another one continues where the other ended. A batch is gathered from the mapped
 * partitions (rows.h). row_plan.h decides which rows are a worker's share. */
#pragma once

#include "nn/net/net.h"
#include "train/feed/rows.h"

struct mr_feed_spec {
    uint64_t inputs;  /* how many numbers one example has */
    uint64_t outputs; /* how many outputs the model has */
    uint32_t batch;
    uint32_t worker, workers; /* index of this worker; number of all workers */
    /* rows of this worker's share, as many as in the even split (row_plan.h); copied */
    const struct mr_row_range *ranges;
    uint32_t ranges_count; /* 0: the share is that of the even split */
    bool shuffle;
    bool keep; /* an incomplete last batch is used, filled up from the start of the share */
    uint64_t seed;
};

struct mr_feed;

/* Opens a feed. `x`, `y`: arguments of an operator, by reference or inline; lent for the feed's
 * life. `name` ("data.train") begins every error text. */
int mr_feed_open(const struct mr_feed_spec *spec, const char *name, const struct mr_arg *x,
    const struct mr_arg *y, const struct mr_feed_store *store, struct mr_feed **out,
    struct mr_error *e);
void mr_feed_close(struct mr_feed **f);

/* True: x or y is generated test data (store/object/value.h). */
bool mr_feed_is_drawn(const struct mr_feed *f);
/* Returns the number of rows in this share. */
uint64_t mr_feed_rows(const struct mr_feed *f);
/* Returns the number of steps in an epoch, which is the same for all workers. */
uint64_t mr_feed_steps(const struct mr_feed *f);
struct mr_feed_moved mr_feed_moved(const struct mr_feed *f);

/* Returns the batch of step `step`, counted over all epochs. Lent until the next call. */
void mr_feed_batch(struct mr_feed *f, uint64_t step, struct mr_nn_batch *out);
/* Returns `n` rows of the share in stored order, from row `first` on. `n` is at most the spec's
 * `batch`. Rows that are contiguous in memory are not copied. The rows are lent until the next
 * call. */
void mr_feed_range(struct mr_feed *f, uint64_t first, uint32_t n, struct mr_nn_batch *out);
