/* Batches from a queue (the trainer's service Queues). An item is a stored object: a list of x and
 * y, each a tensor or a collection. Its rows come in order, and a batch may begin in one item and
 * end in another. At-least-once: an item is acknowledged when all batches with its rows have been
 * learned. Items that a worker had taken when it died come again. */
#pragma once

#include "train/feed/feed.h"
#include "train/feed/store.h"

struct mr_queue_feed;

struct mr_queue_feed_spec { /* texts are lent for the feed's life */
    const char *trainer;
    const struct mr_credential *credential;
    const char *queue;
    uint64_t inputs, outputs; /* as of struct mr_feed_spec */
    uint32_t batch;
    bool keep; /* what is left when the queue is closed and nothing waits is a batch too, filled
                  up from its own start */
    const struct mr_role_store *store; /* of the caller's thread */
    bool *is_drawn;                    /* set when an item is of drawn data; may be NULL */
};

int mr_queue_feed_open(
    const struct mr_queue_feed_spec *s, struct mr_queue_feed **out, struct mr_error *e);
void mr_queue_feed_close(struct mr_queue_feed **f); /* what was not learned goes back */

/* The next batch, in the feed's buffers until it is done: asked again before, it is the same.
 * MR_EAGAIN: none came by `deadline`; MR_ENOENT: the queue is closed and empty, and nobody holds an
 * item of it. An item that is no batch is put aside with the reason; `e` says so only when the
 * queue itself cannot be used. A queue that is full of what is in use already gives no more: then
 * the batch is filled up, too. */
int mr_queue_feed_batch(
    struct mr_queue_feed *f, mr_time deadline, struct mr_nn_batch *out, struct mr_error *e);
/* The batch is in a gradient under way; returns its number, from 1. The next may be asked for. */
uint64_t mr_queue_feed_done(struct mr_queue_feed *f);
/* The fate of all batches up to that number: learned, or to be learned again. */
void mr_queue_feed_settle(struct mr_queue_feed *f, uint64_t batch, bool learned);
