/* A training worker: what its two ways of sharing gradients have in common. Private to train/role.
 */
#pragma once

#include "train/feed/queue.h"
#include "train/role/internal.h"

struct mr_trainee {
    struct mr_role r;
    struct mr_nn_net *net;
    struct mr_feed *feed; /* one of the two */
    struct mr_queue_feed *queue;
    uint64_t steps; /* gradients that this index computed, earlier attempts included */
    struct mr_nn_batch batch;
    bool has_batch;    /* not used yet */
    bool is_exhausted; /* no batch will come any more */
    mr_time lap;
};

/* The batch of step `step` (of a feed), waiting at most `deadline` (for a queue): MR_OK, MR_EAGAIN,
 * or MR_ENOENT: the data are used up. */
int mr_trainee_batch(struct mr_trainee *t, uint64_t step, mr_time deadline, struct mr_error *e);
/* Gradients of the batch at `params` into `grads`, clipped. The batch stays, to be learned again if
 * they come to nothing. */
int mr_trainee_learn(struct mr_trainee *t, const float *params, float *grads, struct mr_error *e);
/* Its gradients are under way: the next batch is wanted. Of a queue: its number. */
uint64_t mr_trainee_used(struct mr_trainee *t);
/* Tells while learning which gradients are final (mr_nn_net_follow), unless they are clipped, which
 * only the last makes them. */
void mr_trainee_follow(struct mr_trainee *t, mr_nn_ready ready, void *ctx);
/* Says what was done; and, once, that nothing is left. */
void mr_trainee_report(struct mr_trainee *t, uint64_t version);
/* Finished: waits until the session ends; the saver keeps the model when asked to. `keep` is
 * called then, may be NULL. */
int mr_trainee_linger(struct mr_trainee *t,
    int (*keep)(struct mr_trainee *t, void *ctx, struct mr_error *e), void *ctx,
    struct mr_error *e);

/* worker_ps.c, worker_ring.c: until the session ends, or an error. */
int mr_trainee_push(struct mr_trainee *t, struct mr_error *e);
int mr_trainee_reduce(struct mr_trainee *t, struct mr_error *e);
