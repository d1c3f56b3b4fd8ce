/* Batches from a queue (Queues of the trainer): a thread takes items ahead and acknowledges what
 * has been learned, so that the role never waits for Redis. An item is a stored object: a list of x
 * and y, each a tensor or a collection; its rows come in order, and a batch may begin in one item
 * and end in another. At-least-once: what a worker had taken when it died comes again. */
#pragma once

#include "services/worker/feed.h"
#include "services/worker/role_store.h"

struct mr_queue_feed;

struct mr_queue_feed_spec { /* texts are lent for the feed's life */
    const char *trainer, *bearer;
    const char *queue;
    uint64_t inputs, outputs; /* as of struct mr_feed_spec */
    uint32_t batch;
    bool keep; /* what is left when the queue is empty for good is a batch too, filled up from its
                  own start */
    const struct mr_role_store *store; /* of the caller's thread */
};

int mr_queue_feed_open(
    const struct mr_queue_feed_spec *s, struct mr_queue_feed **out, struct mr_error *e);
void mr_queue_feed_close(struct mr_queue_feed **f); /* what was not learned goes back */

/* The next batch, in the feed's buffers until the next call. MR_EAGAIN: none came by `deadline`;
 * MR_ENOENT: the queue is closed and empty. An item that is no batch is put aside with the reason;
 * `e` says so only when the queue itself cannot be used. */
int mr_queue_feed_batch(
    struct mr_queue_feed *f, mr_time deadline, struct mr_nn_batch *out, struct mr_error *e);
/* The last batch has been learned: items that it used up are acknowledged. */
void mr_queue_feed_done(struct mr_queue_feed *f);
/* The last batch has to wait, perhaps for those who wait for the queue's end: its items are
 * acknowledged now, though it is not learned yet. */
void mr_queue_feed_let_go(struct mr_queue_feed *f);
bool mr_queue_feed_is_over(const struct mr_queue_feed *f); /* closed and empty, as last heard */
