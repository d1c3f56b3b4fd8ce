/* Stop rules of a training: a threshold that a score meets, or patience, which ends a training
 * whose scores no longer improve. The trainer applies the rules to end a session; the scorer
 * applies them to keep the best parameters. A score is a JSON object. Numbers that are not finite
 * are the texts "NaN" and "Infinity". */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct mr_nn_threshold {
    struct mr_str field; /* n = 0: the rule is off */
    bool is_above;       /* met above `value`; otherwise met below it */
    double value;
};

struct mr_nn_patience {
    struct mr_str field; /* n = 0: the rule is off */
    uint32_t scores;     /* ends after so many scores without improvement */
    double min_delta;    /* smallest change that counts as an improvement */
    bool is_max;         /* higher is better */
};

struct mr_nn_patience_state { /* starts zeroed */
    bool has_best;
    double best;
    uint32_t bad_scores; /* scores since the best one */
};

enum mr_nn_patience_says {
    MR_NN_PATIENCE_SAME,   /* no improvement, or no such field */
    MR_NN_PATIENCE_BETTER, /* the best score so far */
    MR_NN_PATIENCE_ENDS,   /* patience is exhausted: the training ends */
};

/* `*out` (may be NULL) receives the number that met the threshold. */
bool mr_nn_threshold_is_met(const struct mr_nn_threshold *rule, yyjson_val *score, double *out);
enum mr_nn_patience_says mr_nn_patience_judge(
    const struct mr_nn_patience *rule, struct mr_nn_patience_state *state, yyjson_val *score);
