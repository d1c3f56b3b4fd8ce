/* A model at use over any number of examples: predictions and scores, in batches. Keeps the nets it
 * made, one for whole batches and one for what is left over, so that a second call with as many
 * examples makes none. One thread at a time uses it; it may be another one at each call. */
#pragma once

#include "nn/net/net.h"

#define MR_NN_ROWS_BATCH 64 /* examples at once where nothing else is asked for */

struct mr_nn_rows;

/* `m` is borrowed for its life. `batch_max` 0: MR_NN_ROWS_BATCH. */
struct mr_nn_rows *mr_nn_rows_new(const struct mr_nn_model *m, uint32_t batch_max);
void mr_nn_rows_free(struct mr_nn_rows **r);

/* The examples that the next call may take at once: at most `left`, and those are one batch. For
 * callers that bring examples piece by piece. */
uint32_t mr_nn_rows_batch(const struct mr_nn_rows *r, uint64_t left);

/* x: n × input; out: n × output, written. */
int mr_nn_rows_predict(struct mr_nn_rows *r, const float *params, const float *x, uint64_t n,
    float *out, struct mr_error *e);
/* Adds n examples to `score`; y has as many labels. */
int mr_nn_rows_score(struct mr_nn_rows *r, enum mr_nn_loss loss, const float *params,
    const float *x, struct mr_nn_labels y, uint64_t n, struct mr_nn_score *score,
    struct mr_error *e);

/* Labels that one example has: 1, or one for each row of an output of several axes. */
uint64_t mr_nn_labels_per_example(const struct mr_nn_model *m);
