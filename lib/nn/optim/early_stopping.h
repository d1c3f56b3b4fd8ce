/* Stop rules of a training: a threshold that a score meets, or patience, which ends a training
 * whose scores no longer improve. The trainer applies the rules to end a training; the scorer
 * applies them to keep the best parameters. A score is a JSON object. Numbers that are not finite
 * are the texts "NaN", "Infinity" and "-Infinity". */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <yyjson.h>

struct mr_nn_threshold {
    struct mr_str field; /* empty: the rule is off */
    /* True: the rule is met by a number above `value`. False: by a number below `value`. */
    bool is_above;
    double value;
};

struct mr_nn_patience {
    struct mr_str field; /* empty: the rule is off */
    /* The training ends after this many scores in a row without improvement. Scores that do not
     * have the field are not counted. */
    uint32_t scores;
    double min_delta; /* an improvement has to be larger than this */
    bool is_max;      /* true: a higher number is better; false: a lower one */
};

struct mr_nn_patience_state { /* state of the rule in one training; starts zeroed */
    bool has_best;
    double best;
    uint32_t bad_scores; /* number of scores since the best one that have the rule's field */
};

enum mr_nn_patience_says {
    MR_NN_PATIENCE_SAME,   /* the score is no improvement, or does not have the field that the rule
                            * watches */
    MR_NN_PATIENCE_BETTER, /* the score is an improvement, so it is the best one so far */
    MR_NN_PATIENCE_ENDS,   /* patience is exhausted: the training ends */
};

/* True: the score meets the threshold. `*out` (may be NULL) receives the number in the score's
 * field. False: the score has no such number, or the number does not meet the threshold. */
bool mr_nn_threshold_is_met(const struct mr_nn_threshold *rule, yyjson_val *score, double *out);
enum mr_nn_patience_says mr_nn_patience_judge(
    const struct mr_nn_patience *rule, struct mr_nn_patience_state *state, yyjson_val *score);
