/* A model made ready to compute for one batch size: oneDNN primitives, activations and scratch are
 * made once, then any number of steps run without allocating. Computes on the calling thread only.
 *
 * One thread at a time uses a net; it may be another one at each call. Parameters and gradients are
 * the caller's vectors, in the model's layout, and nothing of them is kept between calls. */
#pragma once

#include "nn/net/loss.h"
#include "nn/model/model.h"

#define MR_NN_BATCH_MAX 65536
#define MR_NN_NET_BYTES_MAX ((uint64_t)16 << 30) /* activations and scratch of one net */

struct mr_nn_net;

struct mr_nn_batch {
    const float *x; /* batch × input */
    struct mr_nn_labels y;
    uint64_t step; /* Dropout draws by it: the same step drops the same */
};

/* `m` is borrowed for the net's life. */
int mr_nn_net_new(
    const struct mr_nn_model *m, uint32_t batch, struct mr_nn_net **out, struct mr_error *e);
/* One that scores and predicts only; takes less memory, and less time to make. */
int mr_nn_net_new_for_use(
    const struct mr_nn_model *m, uint32_t batch, struct mr_nn_net **out, struct mr_error *e);
void mr_nn_net_free(struct mr_nn_net **n);
uint32_t mr_nn_net_batch(const struct mr_nn_net *n);

/* Forward and backward in training mode: writes all `count` gradients of the batch's mean loss (and
 * for the state, see model/model.h) and adds the batch to `score`. With cross-entropy a Softmax
 * that ends the model is part of the loss, and a model without one is taken to end in logits. */
int mr_nn_net_learn(struct mr_nn_net *n, enum mr_nn_loss loss, const float *params,
    const struct mr_nn_batch *b, float *grads, struct mr_nn_score *score, struct mr_error *e);

/* From now on (NULL: no longer) learn tells which gradients are final as soon as they are, while
 * those of the layers before are still to come: ranges of `grads` without overlap, from the last
 * layer's to the first's and within one from its end, all of them by the time learn returns well.
 * Called on learn's thread. */
typedef void (*mr_nn_ready)(void *ctx, uint64_t offset, uint64_t count);
void mr_nn_net_follow(struct mr_nn_net *n, mr_nn_ready ready, void *ctx);

/* Forward only, as for use: Dropout passes all, BatchNorm takes its moving mean and variance. */
int mr_nn_net_score(struct mr_nn_net *n, enum mr_nn_loss loss, const float *params,
    const struct mr_nn_batch *b, struct mr_nn_score *score, struct mr_error *e);

/* batch × output; a loan until the next call on the net. */
int mr_nn_net_predict(struct mr_nn_net *n, const float *params, const float *x, const float **out,
    struct mr_error *e);
