/* The part that the two kinds of training worker share. worker_ps.c uses parameter servers, and
 * worker_ring.c combines gradients by all-reduce. */
#pragma once

#include "train/feed/queue.h"
#include "train/member/role.h"

struct mr_trainee {
    struct mr_role r;
    struct mr_nn_net *net;
    struct mr_feed *feed; /* either `feed` or `queue` is set */
    struct mr_queue_feed *queue;
    /* Parameter servers: number of gradients that this worker and the earlier processes of its
     * index have computed. All-reduce: each step sets `steps` to the version of the parameters. */
    uint64_t steps;
    struct mr_nn_batch batch;
    bool has_batch;    /* `batch` has not been used yet */
    bool is_exhausted; /* the data are used up: no batch will come */
    mr_time lap;
};

/* Sets t->batch, unless it has not been used yet. If the data are in arrays, the batch is that of
 * step `step`. If a queue feeds the worker, the worker waits for the next batch until `deadline`.
 * MR_EAGAIN: there is no batch yet. MR_ENOENT: the data are used up. */
int mr_trainee_batch(struct mr_trainee *t, uint64_t step, mr_time deadline, struct mr_error *e);
/* Computes the gradient of the batch at `params` into `grads` and clips it. The batch stays until
 * mr_trainee_used, so that a gradient which was dropped can be computed again. */
int mr_trainee_learn(struct mr_trainee *t, const float *params, float *grads, struct mr_error *e);
/* Gives up the present batch, so that mr_trainee_batch sets the next one. Called when the gradient
 * of the present batch is on its way. If a queue feeds the worker, returns the number of the batch
 * that was given up, else 0. */
uint64_t mr_trainee_used(struct mr_trainee *t);
/* Makes `t->net` call `ready` while a gradient is computed, with the part of the gradient that is
 * final (mr_nn_net_follow). Does nothing if gradients are clipped: then all of them change at the
 * end. */
void mr_trainee_follow(struct mr_trainee *t, mr_nn_ready ready, void *ctx);
void mr_trainee_report(struct mr_trainee *t, uint64_t version);
/* Called after the last step. Waits until the session runs again (MR_OK) or the role has to end
 * (MR_ECANCELED). If this worker is the saver (save_model.h), calls `keep` once, when the session
 * asks for the model, to save the model. */
int mr_trainee_linger(struct mr_trainee *t,
    int (*keep)(struct mr_trainee *t, void *ctx, struct mr_error *e), void *ctx,
    struct mr_error *e);
