/* The operators of the loop that fits a generalized linear model: glm.start, glm.add, glm.step and
 * glm.converged. glm.part, which works on rows, is in ops/glm/part.c; the results of a fit are in
 * ops/glm/model.c. The arguments and results of these operators are states (ops/glm/state.h) and
 * partials (ops/glm/partial.h). */
#include "ops/glm/glm.h"

#include "ops/array/array.h"
#include "ops/glm/args.h"
#include "ops/glm/merge.h"

#include <math.h>

/* ---- start ---- */

static int one_of(struct mr_op_call *call, unsigned at, const char *const *names, unsigned count,
    const char *all, double *out)
{
    struct mr_str text = call->args[at].bytes;
    for (unsigned i = 0; i < count; i++) {
        if (!mr_str_eq(text, mr_str(names[i]))) continue;
        *out = i;
        return MR_OK;
    }
    return call->does->fail(call, MR_EINVAL, "argument \"%s\": expected %s, got \"%.*s\"",
        call->op->params[at].name, all, (int)MR_MIN(text.n, 40u), text.p);
}

static int real(struct mr_op_call *call, unsigned at, double max, double *out)
{
    *out = mr_arg_f64(&call->args[at]);
    if (isfinite(*out) && *out >= 0 && *out <= max) return MR_OK;
    return call->does->fail(call, MR_EINVAL, "argument \"%s\": expected a number from 0%s",
        call->op->params[at].name, max <= 1 ? " to 1" : "");
}

static int read_penalty(struct mr_op_call *call, struct mr_glm_head *h)
{
    static const char *const penalties[] = {"none", "l1", "l2", "elasticnet"};
    double penalty = 0;
    double alpha = 0;
    double ratio = 0;
    int err =
        one_of(call, 2, penalties, MR_ARRAY_LEN(penalties), "none, l1, l2 or elasticnet", &penalty);
    if (!err) err = real(call, 3, 1e300, &alpha);
    if (!err) err = real(call, 4, 1, &ratio);
    if (err) return err;
    ratio = penalty == 1 ? 1 : penalty == 2 ? 0 : ratio;
    h->l1 = penalty == 0 ? 0 : alpha * ratio;
    h->l2 = penalty == 0 ? 0 : alpha * (1 - ratio);
    int solver = (int)h->solver;
    if (h->l1 == 0 || solver == MR_GLM_PROXIMAL || solver == MR_GLM_ADMM) return MR_OK;
    return call->does->fail(call, MR_EINVAL,
        "argument \"penalty\": the solver \"%s\" wants a smooth one (none, l2); proximal and admm "
        "take l1 and elasticnet",
        mr_glm_solvers[solver]);
}

/* Takes the means and the standard deviations of the columns from the result of array.moments over
 * axis 0. */
static int take_moments(struct mr_op_call *call, const struct mr_tensor *t, struct mr_glm *g)
{
    const double *numbers = t->data;
    uint32_t p = g->columns;
    bool centered = g->h->intercept != 0;
    for (uint32_t j = 0; j < p; j++) {
        double n = numbers[j];
        double mean = numbers[p + j];
        double square = numbers[2 * (size_t)p + j] / n + (centered ? 0 : mean * mean);
        if (!(n > 0) || !isfinite(mean) || !isfinite(square))
            return call->does->fail(call, MR_EINVAL,
                "argument \"moments\": those of column %u are not finite, or of no row", j);
        g->center[j] = centered ? mean : 0;
        g->scale[j] = square > 0 ? sqrt(square) : 1;
    }
    g->scale[p] = 1;
    return MR_OK;
}

static int moments_of(struct mr_op_call *call, struct mr_glm_head *h, struct mr_tensor *t)
{
    if (call->args[9].type == MR_ARG_NIL) return MR_OK;
    *t = *call->args[9].tensor;
    if (t->dtype != MR_DTYPE_F64 || t->ndim != 2 || t->shape[0] != 4 || !t->shape[1] ||
        t->shape[1] > MR_GLM_COLUMNS_MAX || !mr_tensor_is_contiguous(t))
        return call->does->fail(call, MR_EINVAL,
            "argument \"moments\": expected array.moments of X over axis 0: f64[4, columns]");
    h->standardized = 1;
    h->columns = (double)t->shape[1];
    return MR_OK;
}

/* Reads the argument "from", an earlier fit whose coefficients are the starting point. If the
 * argument is null, `from` stays as it is. */
static int take_from(struct mr_op_call *call, struct mr_glm_head *h, struct mr_glm *from)
{
    if (call->args[10].type == MR_ARG_NIL) return MR_OK;
    int err = mr_glm_state(call, &call->args[10], "from", from);
    if (err) return err;
    if (!from->columns || (h->columns != 0 && h->columns != from->columns))
        return call->does->fail(call, MR_EINVAL,
            "argument \"from\": that fit has %u columns, \"moments\" %g", from->columns,
            h->columns);
    h->columns = from->columns;
    return MR_OK;
}

static void begin_at(const struct mr_glm *from, struct mr_glm *g)
{
    double b = 0;
    mr_glm_raw(from, from->w, g->trial);
    for (uint32_t j = 0; j < g->columns && g->scale; j++) {
        b += g->trial[j] * g->center[j];
        g->trial[j] *= g->scale[j];
    }
    g->trial[g->columns] = g->h->intercept != 0 ? g->trial[g->columns] + b : 0;
    memcpy(g->w, g->trial, (g->columns + 1) * sizeof *g->w);
}

static int run_start(struct mr_op_call *call)
{
    struct mr_glm_head h = {0};
    struct mr_glm from = {0};
    struct mr_tensor moments;
    int64_t count = 0;
    int err =
        one_of(call, 0, mr_glm_families, MR_GLM_FAMILIES, "logistic, normal or poisson", &h.family);
    if (!err)
        err = one_of(call, 1, mr_glm_solvers, MR_GLM_SOLVERS, "gd, newton, lbfgs, proximal or admm",
            &h.solver);
    if (!err) err = read_penalty(call, &h);
    h.intercept = call->args[5].boolean;
    if (!err) err = real(call, 6, 1e300, &h.tol);
    if (!err && call->args[7].type != MR_ARG_NIL)
        err = mr_arg_int(call, &call->args[7], "iterations", 1, 1000000000, &count);
    h.iterations_max = (double)count;
    if (!err) err = mr_arg_int(call, &call->args[8], "memory", 1, MR_GLM_MEMORY_MAX, &count);
    h.memory = (double)count;
    if (!err) err = moments_of(call, &h, &moments);
    if (!err) err = take_from(call, &h, &from);
    if (!err) err = real(call, 11, 1e300, &h.step);
    /* The solver newton uses the Hessian of each step instead of a metric (ops/glm/metric.h). */
    h.metric = call->args[12].boolean && (int)h.solver != MR_GLM_NEWTON;
    if (!err) err = mr_glm_columns_check(call, &h, (uint64_t)h.columns);
    if (err) return err;
    uint64_t numbers = mr_glm_numbers(&h);
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &numbers);
    if (!to) return MR_ELIMIT;
    memset(to, 0, numbers * sizeof *to);
    struct mr_glm g;
    mr_glm_copy(NULL, &h, to, &g);
    if (h.standardized != 0) err = take_moments(call, &moments, &g);
    if (!err && from.h) begin_at(&from, &g);
    return err;
}

/* ---- add, step ---- */

static int run_add(struct mr_op_call *call)
{
    struct mr_glm_partial_head h = {0};
    struct mr_glm_partial sum;
    uint32_t count = 0;
    const struct mr_glm_parts all = {.items = call->rest, .count = call->rest_count};
    struct mr_glm_partial *parts = call->does->scratch(call, all.count * sizeof *parts);
    if (!parts) return MR_ELIMIT;
    int err = mr_glm_merge_head(call, &all, parts, &count, &h);
    if (err) return err;
    uint64_t numbers = mr_glm_partial_numbers(&h);
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &numbers);
    if (!to) return MR_ELIMIT;
    memset(to, 0, numbers * sizeof *to);
    mr_glm_merge(parts, count, to, &h, &sum);
    return MR_OK;
}

static int run_step(struct mr_op_call *call)
{
    struct mr_glm g;
    uint64_t numbers = 0;
    const struct mr_glm_parts all = {.items = call->rest, .count = call->rest_count};
    int err = mr_glm_state(call, &call->args[0], "state", &g);
    if (!err) err = mr_glm_merge_step(call, &g, &all, &numbers);
    if (err) return err;
    if (!numbers) return call->does->return_arg(call, &call->args[0]); /* unchanged */
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &numbers);
    if (!to) return MR_ELIMIT;
    memcpy(to, g.h, numbers * sizeof *to);
    return MR_OK;
}

static int run_converged(struct mr_op_call *call)
{
    struct mr_glm g;
    int err = mr_glm_state(call, &call->args[0], "state", &g);
    return err ? err : call->does->return_bool(call, g.h->status != MR_GLM_RUNNING);
}

#define D MR_OP_DETERMINISTIC
#define DV (MR_OP_DETERMINISTIC | MR_OP_VARIADIC)

static const struct mr_op_param start[] = {
    {"family", MR_TAKES_TEXT, NULL, "logistic, normal or poisson, with its canonical link."},
    {"solver", MR_TAKES_TEXT, "\"lbfgs\"",
        "gd, newton or lbfgs (penalties none and l2); proximal or admm (any penalty)."},
    {"penalty", MR_TAKES_TEXT, "\"none\"",
        "none, l1, l2 or elasticnet; the intercept has no penalty."},
    {"alpha", MR_TAKES_REAL, "0.0001", "Weight of the penalty relative to the mean loss."},
    {"l1_ratio", MR_TAKES_REAL, "0.5", "Share of l1 in elasticnet, 0 to 1."},
    {"intercept", MR_TAKES_BOOL, "true", "Fit an intercept."},
    {"tol", MR_TAKES_REAL, "1e-8",
        "Tolerance that ends the fit: of the largest gradient component; for newton, of the "
        "decrement relative to the loss; for admm, of both residuals."},
    {"iterations", MR_TAKES_INT | MR_TAKES_NIL, "null",
        "Largest number of accepted steps; null: no limit."},
    {"memory", MR_TAKES_INT, "8", "Number of pairs that lbfgs stores, 1 to 64."},
    {"moments", MR_TAKES_TENSOR | MR_TAKES_NIL, "null",
        "array.moments of X over axis 0, to standardise the columns."},
    {"from", MR_TAKES_TENSOR | MR_TAKES_NIL, "null", "State of an earlier fit to start from."},
    {"rho", MR_TAKES_REAL, "0", "Initial rho of admm; 0: chosen from the number of chunks."},
    {"precondition", MR_TAKES_BOOL, "false",
        "Precondition steps with the Hessian at the start of the fit: for correlated columns, at "
        "most 1,024 (newton always does so)."},
};
static const struct mr_op_param add[] = {
    {"parts", MR_TAKES_TENSOR, NULL, "Results of glm.part or glm.add."},
};
static const struct mr_op_param step[] = {
    {"state", MR_TAKES_TENSOR, NULL, "The state that the parts belong to."},
    {"parts", MR_TAKES_TENSOR | MR_TAKES_NIL, "null",
        "Results of glm.part or glm.add for all chunks; without parts the state does not change."},
};
static const struct mr_op_param converged[] = {
    {"state", MR_TAKES_TENSOR, NULL, "The result of glm.step."},
};

const struct mr_op_desc *mr_glm_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("glm.start", D, start, 5000, run_start, "state: f64 tensor",
            "Starts the fit of a generalized linear model."),
        MR_OP_ROW("glm.add", DV, add, 5000, run_add, "partial: f64 tensor",
            "Adds several partials, for trees over many chunks."),
        MR_OP_ROW("glm.step", DV, step, 10000, run_step, "state: f64 tensor",
            "Accepts or rejects the evaluated point and chooses the next one."),
        MR_OP_ROW("glm.converged", D, converged, 2000, run_converged, "bool",
            "Tests whether the fit is over: it converged, cannot make progress, or made all its "
            "iterations."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
