/* One linear classifier by stochastic gradient descent (Bottou 2010), with the conventions of
 * scikit-learn's SGDClassifier, so that the same settings give the same numbers:
 *
 *   - An L2 penalty multiplies a scalar that is kept apart from the weights, before each step.
 *   - An L1 penalty is the cumulative penalty of Tsuruoka, Tsujii and Ananiadou (2009).
 *   - The learning rate "optimal" is 1 / (alpha (t0 + t - 1)) in step t, from 1. Bottou's heuristic
 *     gives t0.
 *   - An epoch makes progress if its mean loss is below the best one by at least tol.
 *
 * Works on rows and weights in memory of the caller. */
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
    MR_SGD_INVSCALING, /* the rate eta0 / t^power_t */
    /* The rate eta0, divided by 5 after `patience` epochs without progress, down to 1e-6. */
    MR_SGD_ADAPTIVE,
    MR_SGD_RATES,
};

struct mr_sgd_settings {
    enum mr_sgd_loss loss;
    enum mr_sgd_penalty penalty;
    enum mr_sgd_rate rate;
    double alpha;
    double l1_ratio; /* share of the L1 penalty in elasticnet */
    double eta0;
    double power_t;
    /* -INFINITY: the fit does not stop early. */
    double tol;
    uint32_t epochs;
    uint32_t patience;
    bool fit_intercept;
    bool shuffle;
    /* True: the result is the mean of the weights after all steps. */
    bool average;
};

struct mr_sgd_rows {
    const double *x;    /* rows × columns numbers */
    const uint32_t *of; /* by row: the number of its class */
    uint32_t positive;  /* this class counts as 1, all others as -1 */
    uint32_t rows;
    uint32_t columns;
};

/* Working memory, which the caller provides. The arrays of double have `columns` numbers. */
struct mr_sgd_work {
    double *weights; /* the result */
    double *mean;    /* the mean of the weights; for `average` */
    double *credit;  /* for L1: the penalty that each weight has received */
    uint32_t *order; /* numbers of the rows in the order of an epoch; `rows` of them */
    uint32_t shuffle_seed;
    bool (*is_cancelled)(void *ctx);
    void *ctx;
};

enum mr_sgd_end { MR_SGD_DONE, MR_SGD_DIVERGED, MR_SGD_CANCELLED };

/* Fits a classifier. Sets w->weights to its weights, `*intercept` to its intercept, and `*epochs`
 * to the number of epochs that ran. MR_SGD_DIVERGED: a weight is not finite. */
enum mr_sgd_end mr_sgd_fit(const struct mr_sgd_settings *s, const struct mr_sgd_rows *rows,
    struct mr_sgd_work *w, double *intercept, uint32_t *epochs);

/* Returns x · w, summed from first to last. */
double mr_sgd_dot(const double *x, const double *w, uint32_t n);
