/* What a prediction is worth: losses, their gradients, and accuracy. All are means over examples.
 *
 *   cross-entropy  -log softmax(z)[y]; takes logits, computed without overflow; 2 outputs or more
 *   mse            the mean over outputs of (p - y)²
 *   hinge          one output: max(0, 1 - y p), labels -1 and 1 (0 counts as -1);
 *                  more: max(0, 1 + max of the wrong - the right), as Keras' categorical_hinge
 *
 * Labels are class numbers or whole rows (one-hot, or any distribution for cross-entropy). Class
 * numbers stand for one-hot rows in mse with more than one output, for the value itself with one.
 */
#pragma once

#include "base/err.h"

enum mr_nn_loss {
    MR_NN_CROSS_ENTROPY,
    MR_NN_MSE,
    MR_NN_HINGE,
};

struct mr_nn_labels { /* one of the two; of as many examples as the batch */
    const int32_t *index;
    const float *rows;
};

struct mr_nn_score { /* sums, so that scores of batches and of replicas add up */
    double loss_sum;
    uint64_t correct; /* largest output at the label's largest; one output: the nearer side */
    uint64_t examples;
};

int mr_nn_loss_parse(const char *name, enum mr_nn_loss *out, struct mr_error *e);
const char *mr_nn_loss_name(enum mr_nn_loss l);

/* Adds n examples of k outputs to `score`, and writes into `grad` (n × k, may be NULL) the
 * derivative of their mean loss. Refuses labels out of range with the example's number; `score` is
 * then as it was. */
int mr_nn_loss_add(enum mr_nn_loss loss, const float *out, struct mr_nn_labels y, uint64_t n,
    uint64_t k, float *grad, struct mr_nn_score *score, struct mr_error *e);
