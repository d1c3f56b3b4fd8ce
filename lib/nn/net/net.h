/* A model prepared for one batch size. oneDNN primitives, activations and scratch memory are made
 * once; then any number of steps runs without allocation, on the calling thread. One thread at a
 * time uses a net; each call may come from another thread. Parameters and gradients are vectors of
 * the caller in the model's layout. The net does not keep them between calls. */
#pragma once

#include "nn/net/loss.h"
#include "nn/model/model.h"

#define MR_NN_BATCH_MAX 65536
/* Limit of the bytes of activations and scratch memory of one net. */
#define MR_NN_NET_BYTES_MAX ((uint64_t)16 << 30)

struct mr_nn_net;

struct mr_nn_batch {
    const float *x; /* one row for each example, with all its inputs */
    struct mr_nn_labels y;
    uint64_t step; /* seeds Dropout, so that equal steps drop the same numbers */
};

/* Makes a net; `m` is borrowed for the life of the net. */
int mr_nn_net_new(
    const struct mr_nn_model *m, uint32_t batch, struct mr_nn_net **out, struct mr_error *e);
/* Makes a net that only scores and predicts. Such a net needs less memory and less time to make. */
int mr_nn_net_new_for_use(
    const struct mr_nn_model *m, uint32_t batch, struct mr_nn_net **out, struct mr_error *e);
void mr_nn_net_free(struct mr_nn_net **n);
uint32_t mr_nn_net_batch(const struct mr_nn_net *n);

/* Runs the forward and the backward pass in training mode. Writes to `grads` the gradient of the
 * batch's mean loss by each number of `params`. For BatchNorm's moving mean and variance, the
 * gradient is the amount to subtract (model/model.h). Adds the batch to `score`. With
 * cross-entropy, a Softmax at the end of the model is part of the loss. A model without a final
 * Softmax is taken to end in logits. */
int mr_nn_net_learn(struct mr_nn_net *n, enum mr_nn_loss loss, const float *params,
    const struct mr_nn_batch *b, float *grads, struct mr_nn_score *score, struct mr_error *e);

/* Makes mr_nn_net_learn report gradients as soon as they are final, while the gradients of earlier
 * layers are still computed; `ready` NULL ends the reports. Reports are ranges of `grads` without
 * overlap, from the last layer to the first, and within a layer from its end to its start. When
 * mr_nn_net_learn returns MR_OK, the ranges cover all gradients. `ready` runs on the thread of
 * mr_nn_net_learn. */
typedef void (*mr_nn_ready)(void *ctx, uint64_t offset, uint64_t count);
void mr_nn_net_follow(struct mr_nn_net *n, mr_nn_ready ready, void *ctx);

/* Runs the forward pass only, in inference mode: Dropout passes everything, BatchNorm uses its
 * moving mean and variance. */
int mr_nn_net_score(struct mr_nn_net *n, enum mr_nn_loss loss, const float *params,
    const struct mr_nn_batch *b, struct mr_nn_score *score, struct mr_error *e);

/* Runs the forward pass. `*out` has one row of outputs for each example, lent until the next call
 * on the net. */
int mr_nn_net_predict(struct mr_nn_net *n, const float *params, const float *x, const float **out,
    struct mr_error *e);
