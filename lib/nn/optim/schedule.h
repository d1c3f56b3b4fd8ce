/* Schedules of the learning rate. The factor of the optimizer's rate is a pure function of the
 * version (the number of updates that were applied), so all processes agree on it without
 * messages.
 *
 *   {"type": "constant"}                                     1
 *   {"type": "step", "every": n, "factor": f}                f to the power of floor(version / n)
 *   {"type": "exponential", "every": n, "factor": f}         f to the power of version / n
 *   {"type": "inverse_time", "every": n, "factor": f}        1 / (1 + f * version / n)
 *   {"type": "cosine", "steps": n, "final": s}               half a cosine from 1 to s (default 0)
 *   {"type": "warmup", "steps": n}                           (version + 1) / n up to 1
 *   {"type": "piecewise", "at": [a, b], "rates": [r0, r1, r2]}   the rate itself: r1 from a on
 *
 * All types except "warmup" may have "warmup": n, a further factor (version + 1) / n while this
 * factor is below 1. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct yyjson_val;

enum mr_nn_schedule_type {
    MR_NN_CONSTANT,
    MR_NN_STEP,
    MR_NN_EXPONENTIAL,
    MR_NN_INVERSE_TIME,
    MR_NN_COSINE,
    MR_NN_WARMUP,
    MR_NN_PIECEWISE,
    MR_NN_SCHEDULES,
};

#define MR_NN_PIECES_MAX 32

struct mr_nn_schedule { /* all zeros: a constant factor of 1 */
    enum mr_nn_schedule_type type;
    uint64_t steps; /* the field "every" or "steps" */
    double factor;  /* the field "factor" or "final" */
    uint64_t warmup;
    uint32_t pieces; /* for piecewise: entries of `at`; `rates` has one entry more */
    uint64_t at[MR_NN_PIECES_MAX];
    double rates[MR_NN_PIECES_MAX + 1];
};

/* Reads a schedule. `where` begins the error text, such as "optimizer: field \"schedule\"". */
int mr_nn_schedule_read(
    struct yyjson_val *v, const char *where, struct mr_nn_schedule *out, struct mr_error *e);
double mr_nn_schedule_rate(const struct mr_nn_schedule *s, double learning_rate, uint64_t version);
