/* When scores end a training: a threshold that is met, or patience, that is scores which do not get
 * better. The coordinator judges by it, and the scorer, which must know what parameters to keep.
 * A score is an object of JSON. Numbers that have run away are the texts "NaN" and "Infinity". */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct mr_nn_threshold {
    struct mr_str field; /* n = 0: there is none */
    bool is_above;       /* met above `value`, otherwise below it */
    double value;
};

struct mr_nn_patience {
    struct mr_str field; /* n = 0: there is none */
    uint32_t scores;     /* so many without a better one */
    double min_delta;    /* better by more than this */
    bool is_max;         /* higher is better */
};

struct mr_nn_patience_state { /* begins as zeros */
    bool has_best;
    double best;
    uint32_t bad_scores; /* since the best one */
};

enum mr_nn_patience_says {
    MR_NN_PATIENCE_SAME,   /* no better score, or nothing to be judged */
    MR_NN_PATIENCE_BETTER, /* the best score so far */
    MR_NN_PATIENCE_ENDS,   /* too many without a better one: the training is to stop */
};

/* `*out` (may be NULL): the number that met it. */
bool mr_nn_threshold_is_met(const struct mr_nn_threshold *rule, yyjson_val *score, double *out);
enum mr_nn_patience_says mr_nn_patience_judge(
    const struct mr_nn_patience *rule, struct mr_nn_patience_state *state, yyjson_val *score);
