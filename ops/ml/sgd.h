/* One linear separator by stochastic gradient descent (Bottou 2010), with the conventions of
 * scikit-learn's SGDClassifier, so that the same settings give the same numbers:
 *
 *   - an L2 penalty shrinks the weights by a scalar kept apart, before each step;
 *   - an L1 penalty is the cumulative one of Tsuruoka, Tsujii and Ananiadou (2009), clipped at 0;
 *   - "optimal" is 1 / (alpha (t0 + t)), t0 such that the first step is what Bottou suggests;
 *   - an epoch whose summed loss is not tol per row below the best so far is one without progress.
 *
 * Pure: rows in, weights out. */
#pragma once

#include "base/defs.h"

#include <stdbool.h>

enum mr_sgd_loss {
    MR_SGD_HINGE,
    MR_SGD_LOG,
    MR_SGD_SQUARED_HINGE,
    MR_SGD_MODIFIED_HUBER,
    MR_SGD_SQUARED_ERROR,
    MR_SGD_PERCEPTRON,
    MR_SGD_LOSSES,
};

enum mr_sgd_penalty {
    MR_SGD_NO_PENALTY,
    MR_SGD_L1,
    MR_SGD_L2,
    MR_SGD_ELASTICNET,
    MR_SGD_PENALTIES,
};

enum mr_sgd_rate {
    MR_SGD_OPTIMAL,
    MR_SGD_CONSTANT,
    MR_SGD_INVSCALING, /* eta0 / t^power_t */
    MR_SGD_ADAPTIVE,   /* eta0, a fifth of it after `patience` epochs without progress, to 1e-6 */
    MR_SGD_RATES,
};

struct mr_sgd_settings {
    enum mr_sgd_loss loss;
    enum mr_sgd_penalty penalty;
    enum mr_sgd_rate rate;
    double alpha;
    double l1_ratio; /* of elasticnet */
    double eta0;
    double power_t;
    double tol; /* -INFINITY: never stops early */
    uint32_t epochs;
    uint32_t patience;
    bool fit_intercept;
    bool shuffle;
    bool average; /* the result is the mean of the weights after every step */
};

struct mr_sgd_rows {
    const double *x;    /* rows × columns */
    const uint32_t *of; /* classes of the rows */
    uint32_t positive;  /* the class that counts as 1, all others as -1 */
    uint32_t rows;
    uint32_t columns;
};

struct mr_sgd_work { /* the caller's memory */
    double *weights; /* columns: the result */
    double *mean;    /* columns, when averaging */
    double *credit;  /* columns, under an L1 penalty: what each weight has been given of it */
    uint32_t *order; /* rows */
    uint32_t shuffle_seed;
    bool (*is_cancelled)(void *ctx);
    void *ctx;
};

enum mr_sgd_end { MR_SGD_DONE, MR_SGD_DIVERGED, MR_SGD_CANCELLED };

enum mr_sgd_end mr_sgd_fit(const struct mr_sgd_settings *s, const struct mr_sgd_rows *rows,
    struct mr_sgd_work *w, double *intercept, uint32_t *epochs);

/* x · w, summed in order. */
double mr_sgd_dot(const double *x, const double *w, uint32_t n);
