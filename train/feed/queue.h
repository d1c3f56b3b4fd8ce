/* Batches from a queue (the trainer's service Queues). An item is a stored object: a list of x and
 * y, each a tensor or a collection. Rows come in order. A batch may begin in one item and end in
 * the next. Delivery is at-least-once: an item is acknowledged when all batches with its rows were
 * learned, and the items of a worker that died are delivered again. */
#pragma once

#include "train/feed/feed.h"
#include "train/feed/store.h"

struct mr_queue_feed;

struct mr_queue_feed_spec { /* texts are lent for the feed's life */
    const char *trainer;
    const struct mr_credential *credential;
    const char *queue;
    uint64_t inputs, outputs; /* how many numbers one example has; how many outputs the model has */
    uint32_t batch;
    bool keep; /* an incomplete last batch is used, filled up with copies of its own rows */
    /* store->link is used only on the thread that calls the functions of the feed */
    const struct mr_role_store *store;
    bool *is_drawn; /* set to true if an item contains generated test data; may be NULL */
};

int mr_queue_feed_open(
    const struct mr_queue_feed_spec *s, struct mr_queue_feed **out, struct mr_error *e);
/* Closes the feed. Items that were not learned return to the queue. */
void mr_queue_feed_close(struct mr_queue_feed **f);

/* Sets `*out` to the next batch, lent until mr_queue_feed_done. Every call until then sets the same
 * batch. MR_EAGAIN: no complete batch came by `deadline`. MR_ENOENT: the queue is closed and empty,
 * and no item of it is leased. An item that is no list of x and y for this model is put aside as
 * dead, with the reason; `e` is set only if the queue itself cannot be used. A queue has a limit of
 * items. Leased items count towards this limit. When leased items alone reach the limit, no further
 * items come. Then an incomplete batch is filled up with copies of its own rows. */
int mr_queue_feed_batch(
    struct mr_queue_feed *f, mr_time deadline, struct mr_nn_batch *out, struct mr_error *e);
/* Called when the gradient of the batch is on its way. Returns the number of the batch; the first
 * is 1. */
uint64_t mr_queue_feed_done(struct mr_queue_feed *f);
/* Settles all batches up to number `batch`: their items are acknowledged (`learned`) or go back to
 * the queue. */
void mr_queue_feed_settle(struct mr_queue_feed *f, uint64_t batch, bool learned);
