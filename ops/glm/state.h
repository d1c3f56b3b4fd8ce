/* What a fit of a generalized linear model carries from one evaluation to the next - the *state* -
 * and what the chunks answer - *partials*. Both are flat f64 tensors, small enough to travel inside
 * messages when there are few columns. Their numbers may come from outside: `open` checks them.
 *
 * Minimised is, over coefficients w and intercept b,
 *
 *   sum of weight × loss / sum of weights + alpha (l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2)
 *
 * Where columns are standardised, w counts in those units inside the state, and is turned back by
 * mr_glm_raw. Pure: knows no tasks. */
#pragma once

#include "base/err.h"
#include "ops/glm/kernel.h"

#define MR_GLM_COLUMNS_MAX 65536u
#define MR_GLM_SQUARE_COLUMNS_MAX 1024u /* of solvers that form a Hessian */
#define MR_GLM_CHUNKS_MAX 16384u
#define MR_GLM_RECENT 10 /* objectives that a step of gd or proximal is compared with */
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
    MR_GLM_STALLED,    /* no step makes it any better */
    MR_GLM_ITERATIONS, /* as many as were allowed */
    MR_GLM_SEPARATED,  /* the best coefficients are infinite */
    MR_GLM_STATUSES,
};

struct mr_glm_head { /* doubles only: the first numbers of the tensor */
    double magic;
    double family;
    double solver;
    double intercept;
    double standardized;
    double l1; /* alpha × l1_ratio */
    double l2; /* alpha × (1 - l1_ratio) */
    double tol;
    double iterations_max; /* 0: no bound */
    double memory;         /* pairs that L-BFGS keeps */
    double columns;        /* 0: not known yet, all coefficients are 0 */
    double chunks;         /* of ADMM; 0: not known yet */
    double status;
    double evaluations;
    double iterations; /* accepted steps */
    double rejected;   /* trial points since the last one */
    double rows;
    double weight;    /* sum of weights */
    double saturated; /* sum of the loss of a model that hits every y */
    double fit;       /* sum of the loss at w */
    double objective; /* at w */
    double criterion; /* what tol is compared with */
    double step;      /* length of the next one; ADMM: rho */
    double slope;     /* of the direction from w to trial: gradient · (trial - w) */
    double pairs;     /* in use, the latest at (pairs_at - 1) */
    double pairs_at;
    double metric; /* 1: steps are measured by the first Hessian (ops/glm/metric.h) */
    double least;  /* of weights above 0 */
    double offset; /* 1: rows have offsets */
    double wrong;  /* 1: some row is on the other side of X w + b, without its offset */
    double recent[MR_GLM_RECENT];
};

#define MR_GLM_HEAD (sizeof(struct mr_glm_head) / sizeof(double))

struct mr_glm { /* a view of a state; vectors have columns + 1 numbers, the intercept last */
    struct mr_glm_head *h;
    uint32_t columns;
    uint32_t chunks;
    uint32_t memory;
    enum mr_glm_family family;
    enum mr_glm_solver solver;
    double *w;        /* accepted; ADMM: z */
    double *trial;    /* where to evaluate next */
    double *gradient; /* at w, of the smooth part */
    double *center;   /* standardised only: what is taken off a column */
    double *scale;    /* … and what it is divided by */
    double *metric;   /* packed: the first Hessian, or its factor; NULL: none */
    double *spread;   /* newton: diagonal of the inverse Hessian, of the sum; 0: has none */
    double *s;        /* lbfgs: memory × vector */
    double *y;
    double *u; /* admm: chunks × vector */
};

extern const char *const mr_glm_families[MR_GLM_FAMILIES];
extern const char *const mr_glm_solvers[MR_GLM_SOLVERS];
extern const char *const mr_glm_statuses[MR_GLM_STATUSES];

/* Does the fit hold matrices of columns × columns? */
bool mr_glm_is_square(const struct mr_glm_head *h);
/* Numbers of a state with this head. */
size_t mr_glm_numbers(const struct mr_glm_head *h);
/* A view of `numbers` doubles. MR_EINVAL: not a state. */
int mr_glm_open(double *state, size_t numbers, struct mr_glm *out, struct mr_error *e);
/* The same fit with room for what has become known: head and vectors are copied. `to` has
 * mr_glm_numbers(head) doubles, zeroed. */
void mr_glm_copy(
    const struct mr_glm *from, const struct mr_glm_head *head, double *to, struct mr_glm *out);

/* Coefficients as they multiply X, the intercept last. */
void mr_glm_raw(const struct mr_glm *g, const double *w, double *raw);
/* Sums at raw coefficients become means at w: gradient and Hessian by w's units. */
void mr_glm_units(const struct mr_glm *g, double *gradient, double *packed_hessian);
