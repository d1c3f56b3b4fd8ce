/* Operators for a fit of a generalized linear model. glm.coef, glm.intercept and glm.summary return
 * results of the fit. glm.predict predicts rows with the fit. glm.sample draws data to fit. */
#include "ops/glm/glm.h"

#include "ops/glm/args.h"
#include "ops/kernel/random.h"
#include "ops/ml/ml.h"

#include <math.h>

#define MEAN_MAX 1e9 /* the largest mean of a Poisson number */
/* A Poisson number with a larger mean is the sum of several draws: exp(-500) does not underflow. */
#define MEAN_PIECE_MAX 500

/* Reads the argument "state", a fit that has begun. Sets `*raw` to its coefficients for the
 * original columns, in memory of the call. MR_EINVAL: no step was made yet. */
static int open_fit(struct mr_op_call *call, struct mr_glm *g, double **raw)
{
    int err = mr_glm_state(call, &call->args[0], "state", g);
    if (err) return err;
    if (g->h->evaluations == 0)
        return call->does->fail(
            call, MR_EINVAL, "argument \"state\": the fit has not begun: no glm.step was made");
    *raw = call->does->scratch(call, (g->columns + 1) * sizeof **raw);
    if (!*raw) return MR_ELIMIT;
    mr_glm_raw(g, g->w, *raw);
    return MR_OK;
}

static int run_coef(struct mr_op_call *call)
{
    struct mr_glm g;
    double *raw = NULL;
    int err = open_fit(call, &g, &raw);
    if (err) return err;
    uint64_t n = g.columns;
    double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &n);
    if (!to) return MR_ELIMIT;
    memcpy(to, raw, n * sizeof *to);
    return MR_OK;
}

static int run_intercept(struct mr_op_call *call)
{
    struct mr_glm g;
    double *raw = NULL;
    int err = open_fit(call, &g, &raw);
    return err ? err : call->does->return_float(call, raw[g.columns]);
}

/* ---- predict ---- */

static int what_of(struct mr_op_call *call, const struct mr_glm *g, bool *means, bool *classes)
{
    struct mr_str what = call->args[2].bytes;
    *classes = mr_str_eq(what, MR_STR("class"));
    *means = mr_str_eq(what, MR_STR("mean"));
    if (*classes && g->family != MR_GLM_LOGISTIC)
        return call->does->fail(call, MR_EINVAL,
            "argument \"what\": a fit of the family \"%s\" has no classes",
            mr_glm_families[g->family]);
    if (*classes || *means || mr_str_eq(what, MR_STR("link"))) return MR_OK;
    return call->does->fail(call, MR_EINVAL,
        "argument \"what\": expected mean, link or class, got \"%.*s\"", (int)MR_MIN(what.n, 40u),
        what.p);
}

static int run_predict(struct mr_op_call *call)
{
    struct mr_glm g;
    struct mr_glm_rows r = {0};
    double *raw = NULL;
    bool means = false;
    bool classes = false;
    int err = open_fit(call, &g, &raw);
    if (!err) err = what_of(call, &g, &means, &classes);
    if (!err) err = mr_glm_rows(call, &call->args[1], 0, &r);
    if (!err) err = mr_glm_vector(call, &call->args[3], "offset", 0, r.rows, &r.offset);
    if (err) return err;
    if (r.columns != g.columns)
        return call->does->fail(
            call, MR_EINVAL, "argument \"x\": it has %u columns, the fit %u", r.columns, g.columns);
    void *work = call->does->scratch(call, mr_glm_work_bytes(r.columns, false));
    if (!work) return MR_ELIMIT;
    if (!classes) {
        double *to = call->does->return_tensor(call, MR_DTYPE_F64, 1, &r.rows);
        if (!to) return MR_ELIMIT;
        mr_glm_predict(g.family, &r, raw, work, means, to);
        return MR_OK;
    }
    double *eta = call->does->scratch(call, MR_MAX(r.rows, 1u) * sizeof *eta);
    if (!eta) return MR_ELIMIT;
    int64_t *to = call->does->return_tensor(call, MR_DTYPE_I64, 1, &r.rows);
    if (!to) return MR_ELIMIT;
    mr_glm_predict(g.family, &r, raw, work, false, eta);
    for (uint64_t i = 0; i < r.rows; i++)
        to[i] = eta[i] > 0;
    return MR_OK;
}

/* ---- summary ---- */

/* Sets `*out` to the standard errors of the coefficients. These exist where Newton converged
 * without penalty on columns that are not standardised. Otherwise `*out` is null. */
static int spread_of(
    struct mr_op_call *call, const struct mr_glm *g, double scale, struct mr_arg *out)
{
    uint64_t n = (uint64_t)g->columns + (g->h->intercept != 0 ? 1 : 0);
    void *data = NULL;
    *out = (struct mr_arg){.type = MR_ARG_NIL, .input = MR_ARG_NO_INPUT};
    if (!g->spread || !(g->spread[0] > 0) || g->scale || g->h->l2 > 0 ||
        g->h->status != MR_GLM_CONVERGED)
        return MR_OK;
    int err = mr_ml_tensor(call, MR_DTYPE_F64, 1, &n, &data, out);
    for (uint64_t j = 0; j < n && !err; j++)
        ((double *)data)[j] = sqrt(scale * g->spread[j]);
    return err;
}

static int run_summary(struct mr_op_call *call)
{
    struct mr_glm g;
    double *raw = NULL;
    void *data = NULL;
    struct mr_arg coef;
    struct mr_arg errors;
    int err = open_fit(call, &g, &raw);
    if (err) return err;
    const struct mr_glm_head *h = g.h;
    uint64_t n = g.columns;
    err = mr_ml_tensor(call, MR_DTYPE_F64, 1, &n, &data, &coef);
    if (err) return err;
    memcpy(data, raw, n * sizeof *raw);
    double deviance = 2 * (h->fit - h->saturated);
    double left = h->rows - g.columns - h->intercept;
    /* NaN: no degree of freedom is left */
    double spread = left > 0 ? deviance / left : (double)NAN;
    double scale = g.family == MR_GLM_NORMAL ? spread : 1;
    err = spread_of(call, &g, scale, &errors);
    if (err) return err;
    const struct mr_arg items[] = {
        mr_ml_named("family", mr_ml_text(mr_glm_families[g.family])),
        mr_ml_named("solver", mr_ml_text(mr_glm_solvers[g.solver])),
        mr_ml_named("converged", (struct mr_arg){.type = MR_ARG_BOOL,
                                     .input = MR_ARG_NO_INPUT,
                                     .boolean = h->status == MR_GLM_CONVERGED}),
        mr_ml_named("status", mr_ml_text(mr_glm_statuses[(int)h->status])),
        mr_ml_named("iterations", mr_ml_int((int64_t)h->iterations)),
        mr_ml_named("evaluations", mr_ml_int((int64_t)h->evaluations)),
        mr_ml_named("rows", mr_ml_int((int64_t)h->rows)),
        mr_ml_named("objective", mr_ml_float(h->objective)),
        mr_ml_named("loss", mr_ml_float(h->fit)),
        mr_ml_named("deviance", mr_ml_float(deviance)),
        mr_ml_named("dispersion", mr_ml_float(scale)),
        mr_ml_named("criterion", mr_ml_float(h->criterion)),
        mr_ml_named("coef", coef),
        mr_ml_named("intercept", mr_ml_float(raw[g.columns])),
        mr_ml_named("std_err", errors),
    };
    struct mr_arg dict = mr_ml_dict(items, MR_ARRAY_LEN(items));
    return call->does->return_arg(call, &dict);
}

/* ---- sample ---- */

/* Draws a Poisson number by multiplying uniform numbers (Knuth). A large mean is divided into
 * pieces, so that exp(-piece) does not underflow. The numbers drawn for the pieces are added. */
static double poisson(struct mr_stream *s, double mean)
{
    double n = 0;
    while (mean > 0) {
        double piece = fmin(mean, MEAN_PIECE_MAX);
        double end = exp(-piece);
        double product = 1 - mr_stream_f64(s);
        mean -= piece;
        while (product > end) {
            product *= 1 - mr_stream_f64(s);
            n += 1;
        }
    }
    return n;
}

static int sample_params(
    struct mr_op_call *call, double *family, double *coef, uint32_t columns, struct mr_stream *s)
{
    int64_t seed = 0;
    int64_t stream = 0;
    struct mr_str name = call->args[2].bytes;
    *family = MR_GLM_FAMILIES;
    for (unsigned i = 0; i < MR_GLM_FAMILIES; i++)
        if (mr_str_eq(name, mr_str(mr_glm_families[i]))) *family = i;
    if (*family == MR_GLM_FAMILIES)
        return call->does->fail(call, MR_EINVAL,
            "argument \"family\": expected logistic, normal or poisson, got \"%.*s\"",
            (int)MR_MIN(name.n, 40u), name.p);
    coef[columns] = mr_arg_f64(&call->args[3]);
    int err = mr_arg_int(call, &call->args[4], "seed", 0, INT64_MAX, &seed);
    if (!err) err = mr_arg_int(call, &call->args[5], "stream", 0, INT64_MAX, &stream);
    if (!err) mr_stream_init(s, MR_GENERATOR_PCG64, (uint64_t)seed, (uint64_t)stream);
    return err;
}

static int draw_all(
    struct mr_op_call *call, enum mr_glm_family family, struct mr_stream *s, double *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double mean = y[i];
        if (i % 65536 == 65535 && call->does->is_cancelled(call))
            return call->does->fail(call, MR_ECANCELED, "cancelled");
        if (!isfinite(mean) || (family == MR_GLM_POISSON && mean > MEAN_MAX))
            return call->does->fail(
                call, MR_ERANGE, "row %llu has the mean %g", (unsigned long long)i, mean);
        if (family == MR_GLM_LOGISTIC) y[i] = mr_stream_f64(s) < mean;
        if (family == MR_GLM_NORMAL) y[i] = mean + mr_stream_normal(s);
        if (family == MR_GLM_POISSON) y[i] = poisson(s, mean);
    }
    return MR_OK;
}

static int run_sample(struct mr_op_call *call)
{
    struct mr_glm_rows r = {0};
    struct mr_stream s;
    const double *given = NULL;
    double family = 0;
    int err = mr_glm_rows(call, &call->args[0], 0, &r);
    if (!err) err = mr_glm_vector(call, &call->args[1], "coef", 0, r.columns, &given);
    if (err) return err;
    double *coef = call->does->scratch(call, (r.columns + 1) * sizeof *coef);
    void *work = call->does->scratch(call, mr_glm_work_bytes(r.columns, false));
    if (!coef || !work) return MR_ELIMIT;
    memcpy(coef, given, r.columns * sizeof *coef);
    err = sample_params(call, &family, coef, r.columns, &s);
    if (err) return err;
    double *y = call->does->return_tensor(call, MR_DTYPE_F64, 1, &r.rows);
    if (!y) return MR_ELIMIT;
    enum mr_glm_family f = (enum mr_glm_family)(int)family;
    mr_glm_predict(f, &r, coef, work, true, y);
    return draw_all(call, f, &s, y, r.rows);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param fit[] = {
    {"state", MR_TAKES_TENSOR, NULL, "The result of glm.step."},
};
static const struct mr_op_param predict[] = {
    {"state", MR_TAKES_TENSOR, NULL, "The result of glm.step."},
    {"x", MR_TAKES_ARRAY, NULL, "Rows; f64 is read without a copy."},
    {"what", MR_TAKES_TEXT, "\"mean\"", "mean, link (the linear predictor), or class (logistic)."},
    {"offset", MR_TAKES_ARRAY | MR_TAKES_NIL, "null",
        "Known part of the linear predictor, one number for each row."},
};
static const struct mr_op_param sample[] = {
    {"x", MR_TAKES_ARRAY, NULL, "Rows."},
    {"coef", MR_TAKES_ARRAY, NULL, "One coefficient for each column."},
    {"family", MR_TAKES_TEXT, NULL, "logistic, normal (with standard deviation 1) or poisson."},
    {"intercept", MR_TAKES_REAL, "0", "Intercept of the linear predictor."},
    {"seed", MR_TAKES_INT, "0", "Seed of the random numbers."},
    {"stream", MR_TAKES_INT, "0",
        "Number of the chunk: chunks with equal seeds draw different numbers."},
};

const struct mr_op_desc *mr_glm_model_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("glm.coef", D, fit, 2000, run_coef, "f64 tensor [columns]",
            "Returns the coefficients of a fit for the original columns of X."),
        MR_OP_ROW("glm.intercept", D, fit, 2000, run_intercept, "float",
            "Returns the intercept of a fit."),
        MR_OP_ROW("glm.predict", D, predict, 500000, run_predict, "f64 or i64 tensor [rows]",
            "Predicts rows with a fit."),
        MR_OP_ROW("glm.summary", D, fit, 5000, run_summary,
            "dict of family, solver, converged, status, iterations, evaluations, rows, objective, "
            "loss, deviance, dispersion, criterion, coef, intercept, std_err",
            "Describes the result of a fit; std_err after newton without penalty and "
            "standardising."),
        MR_OP_ROW("glm.sample", D, sample, 1000000, run_sample, "f64 tensor [rows]",
            "Draws y for rows from a generalized linear model."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
