/* Losses, their gradients, and accuracy. All are means over examples.
 *
 *   cross-entropy  -log softmax(z)[y] of logits, without overflow; needs 2 outputs or more
 *   mse            mean over outputs of (p - y)²
 *   hinge          one output: max(0, 1 - y p) with labels -1 and 1 (0 counts as -1);
 *                  more: max(0, 1 + largest wrong output - right output), Keras' categorical_hinge
 *
 * Labels are class numbers or rows (one-hot, or any distribution for cross-entropy). In mse with
 * several outputs a class number stands for its one-hot row; with one output it is the value
 * itself. */
#pragma once

#include "base/err.h"

enum mr_nn_loss {
    MR_NN_CROSS_ENTROPY,
    MR_NN_MSE,
    MR_NN_HINGE,
};

struct mr_nn_labels { /* the labels of a batch; one of the two members is set */
    const int32_t *index;
    const float *rows;
};

/* Sums rather than means, so that scores of batches and of replicas can be added. */
struct mr_nn_score {
    double loss_sum;
    /* Examples whose largest output is where the label is largest. With one output: examples whose
     * output is on the same side of 0.5 as the label (hinge: the same side of 0). */
    uint64_t correct;
    uint64_t examples;
};

int mr_nn_loss_parse(const char *name, enum mr_nn_loss *out, struct mr_error *e);
const char *mr_nn_loss_name(enum mr_nn_loss l);

/* Adds n examples of k outputs to `score`. Writes the derivative of the examples' mean loss to
 * `grad` (n × k numbers, may be NULL). MR_ERANGE: a label is out of range; then the error text has
 * the number of the example, and `score` is unchanged. */
int mr_nn_loss_add(enum mr_nn_loss loss, const float *out, struct mr_nn_labels y, uint64_t n,
    uint64_t k, float *grad, struct mr_nn_score *score, struct mr_error *e);
