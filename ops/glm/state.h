/* The *state* of a fit of a generalized linear model: all that one evaluation passes on to the
 * next. A state is a flat f64 tensor. A state may come from a client, so mr_glm_open checks it. The
 * sums that are computed from a state over chunks of rows are partials (ops/glm/partial.h).
 *
 * A fit minimises, over coefficients w and intercept b,
 *
 *   sum of weight × loss / sum of weights + alpha (l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2)
 *
 * If the columns are standardised, the state holds w for standardised columns, and mr_glm_raw
 * converts w to the original columns. */
#pragma once

#include "base/err.h"
#include "ops/glm/kernel.h"

#define MR_GLM_COLUMNS_MAX 65536u
/* Limit of the columns of x for solvers that keep a matrix of columns × columns. */
#define MR_GLM_SQUARE_COLUMNS_MAX 1024u
#define MR_GLM_CHUNKS_MAX 16384u
/* The objective after a step of gd or proximal must be below the largest of this many recent
 * objectives. */
#define MR_GLM_RECENT 10
#define MR_GLM_MEMORY_MAX 64

enum mr_glm_solver {
    MR_GLM_GD,
    MR_GLM_NEWTON,
    MR_GLM_LBFGS,
    MR_GLM_PROXIMAL,
    MR_GLM_ADMM,
    MR_GLM_SOLVERS,
};

enum mr_glm_status {
    MR_GLM_RUNNING,
    MR_GLM_CONVERGED,
    MR_GLM_STALLED,    /* no step improves the objective */
    MR_GLM_ITERATIONS, /* the number of steps reached its bound */
    MR_GLM_SEPARATED,  /* the classes are separable: no finite minimum exists */
    MR_GLM_STATUSES,
};

struct mr_glm_head { /* the first numbers of the tensor; all are doubles */
    double magic;
    double family;
    double solver;
    double intercept;
    double standardized;
    double l1; /* weight of the l1 penalty: alpha × l1_ratio */
    double l2; /* weight of the l2 penalty: alpha × (1 - l1_ratio) */
    double tol;
    double iterations_max; /* 0: no limit */
    double memory;         /* the most pairs that L-BFGS stores */
    double columns;        /* 0: not known yet, and all coefficients are 0 */
    double chunks;         /* chunks of ADMM; 0: not known yet */
    double status;
    double evaluations;
    double iterations; /* number of accepted steps */
    double rejected;   /* number of trial points since the last accepted step */
    double rows;
    double weight;    /* sum of the weights */
    double saturated; /* sum of the loss of a model that predicts every y exactly */
    double fit;       /* sum of the loss at w */
    double objective; /* at w */
    double criterion; /* measure of convergence, compared with tol */
    double step;      /* length of the next step; for ADMM: rho */
    double slope;     /* directional derivative: gradient · (trial - w) */
    /* Number of L-BFGS pairs in use; the newest one is at pairs_at - 1. */
    double pairs;
    double pairs_at;
    double metric; /* 1: the fit is preconditioned by the first Hessian (ops/glm/metric.h) */
    double least;  /* the smallest weight above 0 */
    double offset; /* 1: rows have offsets */
    double wrong;  /* 0: X w + b, without offsets, is known to classify each row correctly */
    double recent[MR_GLM_RECENT];
};

#define MR_GLM_HEAD (sizeof(struct mr_glm_head) / sizeof(double))

/* A view of a state. Vectors have columns + 1 numbers, the intercept last. */
struct mr_glm {
    struct mr_glm_head *h;
    uint32_t columns;
    uint32_t chunks;
    uint32_t memory;
    enum mr_glm_family family;
    enum mr_glm_solver solver;
    double *w;        /* the accepted point; for ADMM: z */
    double *trial;    /* the point to evaluate next */
    double *gradient; /* gradient of the smooth part of the objective, at w */
    /* For standardised columns: subtracted from each column. NULL otherwise. */
    double *center;
    double *scale; /* for standardised columns: divides each column; NULL otherwise */
    /* For a preconditioned fit: the Hessian of the first evaluation or its Cholesky factor, packed
     * (ops/glm/metric.h). NULL otherwise. */
    double *metric;
    /* For newton: the diagonal of the inverse Hessian of the summed loss; all zeros: not known.
     * NULL otherwise. */
    double *spread;
    /* For lbfgs: differences of points (s) and of gradients (y), `memory` vectors each. */
    double *s;
    double *y;
    double *u; /* for admm: the scaled duals, one vector for each chunk */
};

extern const char *const mr_glm_families[MR_GLM_FAMILIES];
extern const char *const mr_glm_solvers[MR_GLM_SOLVERS];
extern const char *const mr_glm_statuses[MR_GLM_STATUSES];

/* True: the solver needs matrices of columns × columns. */
bool mr_glm_is_square(const struct mr_glm_head *h);
/* Returns the number of doubles in a state with this head. */
size_t mr_glm_numbers(const struct mr_glm_head *h);
/* Checks `numbers` doubles, and makes `*out` a view of them. MR_EINVAL: the doubles are not a
 * state. */
int mr_glm_open(double *state, size_t numbers, struct mr_glm *out, struct mr_error *e);
/* Makes a state in `to` from the head `head` and the vectors of `from`; `*out` is a view of it.
 * `to` has mr_glm_numbers(head) zeroed doubles. If `from` has no columns yet, or fewer chunks than
 * `head`, the vectors that `from` lacks stay zero. `from` NULL: all vectors stay zero. */
void mr_glm_copy(
    const struct mr_glm *from, const struct mr_glm_head *head, double *to, struct mr_glm *out);

/* Converts coefficients w of the state to coefficients for the original columns, the intercept
 * last. */
void mr_glm_raw(const struct mr_glm *g, const double *w, double *raw);
/* Converts a gradient and a Hessian in place. Before: sums over rows, with respect to coefficients
 * for the original columns. After: divided by the sum of the weights, and with respect to the
 * coefficients w of the state. `packed_hessian` may be NULL. */
void mr_glm_units(const struct mr_glm *g, double *gradient, double *packed_hessian);
