/* Inference over any number of examples, in batches. The object keeps two nets: one for full
 * batches, and one for the remainder. A further call with the same number of examples makes no new
 * net. One thread at a time uses the object; each call may come from another thread. */
#pragma once

#include "nn/net/net.h"

#define MR_NN_ROWS_BATCH 64 /* default batch size */

struct mr_nn_rows;

/* Makes the object; `m` is borrowed for its life. `batch_max` 0: MR_NN_ROWS_BATCH. */
struct mr_nn_rows *mr_nn_rows_new(const struct mr_nn_model *m, uint32_t batch_max);
void mr_nn_rows_free(struct mr_nn_rows **r);

/* Predicts n examples. `x` has n rows, each with all inputs of one example. `out` receives n rows,
 * each with all outputs of one example. */
int mr_nn_rows_predict(struct mr_nn_rows *r, const float *params, const float *x, uint64_t n,
    float *out, struct mr_error *e);
/* Adds n examples to `score`; `y` has the labels of n examples. */
int mr_nn_rows_score(struct mr_nn_rows *r, enum mr_nn_loss loss, const float *params,
    const float *x, struct mr_nn_labels y, uint64_t n, struct mr_nn_score *score,
    struct mr_error *e);

/* Returns the number of labels of one example: 1, or one for each row of an output with several
 * axes. */
uint64_t mr_nn_labels_per_example(const struct mr_nn_model *m);
