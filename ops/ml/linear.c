/* Linear classifiers: ml.sgd.fit, ml.sgd.decision, ml.sgd.predict, ml.sgd.proba. A model is a dict
 * (coef, intercept, classes, epochs, loss) that every client can read. Several classes are learned
 * one against all others. */
#include "ops/ml/ml.h"

#include "ops/ml/random.h"
#include "ops/ml/sgd.h"

#include <math.h>
#include <stdio.h>

/* ---- settings ---- */

static const char *const losses[MR_SGD_LOSSES] = {
    [MR_SGD_HINGE] = "hinge",
    [MR_SGD_LOG] = "log",
    [MR_SGD_SQUARED_HINGE] = "squared_hinge",
    [MR_SGD_MODIFIED_HUBER] = "modified_huber",
    [MR_SGD_SQUARED_ERROR] = "squared_error",
    [MR_SGD_PERCEPTRON] = "perceptron",
};
static const char *const penalties[MR_SGD_PENALTIES] = {
    [MR_SGD_NO_PENALTY] = "none",
    [MR_SGD_L1] = "l1",
    [MR_SGD_L2] = "l2",
    [MR_SGD_ELASTICNET] = "elasticnet",
};
static const char *const rates[MR_SGD_RATES] = {
    [MR_SGD_OPTIMAL] = "optimal",
    [MR_SGD_CONSTANT] = "constant",
    [MR_SGD_INVSCALING] = "invscaling",
    [MR_SGD_ADAPTIVE] = "adaptive",
};

enum setting_kind { SET_NAME, SET_COUNT, SET_REAL, SET_FLAG };

struct setting {
    const char *name;
    enum setting_kind kind;
    /* For SET_REAL: 0 if the value must be 0 or more; below 0 if any finite number is allowed. The
     * setting "tol" may be null, too, which stands for -INFINITY. */
    double min;
    const char *const *names;
    unsigned names_count;
    size_t offset;
};

#define AT(field) offsetof(struct mr_sgd_settings, field)

static const struct setting settings[] = {
    {"loss", SET_NAME, 0, losses, MR_SGD_LOSSES, AT(loss)},
    {"penalty", SET_NAME, 0, penalties, MR_SGD_PENALTIES, AT(penalty)},
    {"learning_rate", SET_NAME, 0, rates, MR_SGD_RATES, AT(rate)},
    {"alpha", SET_REAL, 0, NULL, 0, AT(alpha)},
    {"l1_ratio", SET_REAL, 0, NULL, 0, AT(l1_ratio)},
    {"eta0", SET_REAL, 0, NULL, 0, AT(eta0)},
    {"power_t", SET_REAL, -1e9, NULL, 0, AT(power_t)},
    {"tol", SET_REAL, -1, NULL, 0, AT(tol)},
    {"epochs", SET_COUNT, 1, NULL, 0, AT(epochs)},
    {"patience", SET_COUNT, 1, NULL, 0, AT(patience)},
    {"fit_intercept", SET_FLAG, 0, NULL, 0, AT(fit_intercept)},
    {"shuffle", SET_FLAG, 0, NULL, 0, AT(shuffle)},
    {"average", SET_FLAG, 0, NULL, 0, AT(average)},
};

static int set_name(struct mr_op_call *call, const struct setting *d, const struct mr_arg *v,
    struct mr_sgd_settings *s)
{
    struct mr_str text = v->type == MR_ARG_TEXT ? v->bytes : MR_STR("null");
    if (mr_str_eq(text, MR_STR("log_loss"))) text = MR_STR("log");
    if (v->type == MR_ARG_NIL && d->names == penalties) text = MR_STR("none");
    for (unsigned i = 0; i < d->names_count; i++) {
        if (!mr_str_eq(text, mr_str(d->names[i]))) continue;
        memcpy((char *)s + d->offset, &i, sizeof i); /* the enums have the size of unsigned */
        return MR_OK;
    }
    char all[160] = "";
    for (unsigned i = 0; i < d->names_count; i++) {
        size_t at = strlen(all);
        (void)snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "", d->names[i]);
    }
    return call->does->fail(call, MR_EINVAL, "setting \"%s\": expected one of %s, got \"%.*s\"",
        d->name, all, (int)MR_MIN(text.n, 40u), text.p);
}

static int set_real(struct mr_op_call *call, const struct setting *d, const struct mr_arg *v,
    struct mr_sgd_settings *s)
{
    double f = -INFINITY;
    if (v->type != MR_ARG_NIL || d->offset != AT(tol)) {
        bool number = v->type == MR_ARG_INT || v->type == MR_ARG_FLOAT;
        f = mr_arg_f64(v);
        if (!number || !isfinite(f) || (f < 0 && d->min == 0))
            return call->does->fail(call, MR_EINVAL, "setting \"%s\": expected a number%s", d->name,
                d->min == 0 ? " that is not negative" : "");
    }
    memcpy((char *)s + d->offset, &f, sizeof f);
    return MR_OK;
}

static int set_one(
    struct mr_op_call *call, struct mr_str name, const struct mr_arg *v, struct mr_sgd_settings *s)
{
    const struct setting *d = settings;
    while (d < settings + MR_ARRAY_LEN(settings) && !mr_str_eq(mr_str(d->name), name))
        d++;
    if (d == settings + MR_ARRAY_LEN(settings))
        return call->does->fail(
            call, MR_EINVAL, "no setting \"%.*s\"", (int)MR_MIN(name.n, 60u), name.p);
    if (d->kind == SET_NAME) return set_name(call, d, v, s);
    if (d->kind == SET_REAL) return set_real(call, d, v, s);
    if (d->kind == SET_FLAG) {
        if (v->type != MR_ARG_BOOL)
            return call->does->fail(
                call, MR_EINVAL, "setting \"%s\": expected true or false", d->name);
        memcpy((char *)s + d->offset, &v->boolean, sizeof v->boolean);
        return MR_OK;
    }
    int64_t count = 0;
    int err = mr_arg_int(call, v, d->name, 1, 1000000000, &count);
    uint32_t n = (uint32_t)count;
    if (!err) memcpy((char *)s + d->offset, &n, sizeof n);
    return err;
}

static int check_settings(struct mr_op_call *call, const struct mr_sgd_settings *s)
{
    if (s->rate == MR_SGD_OPTIMAL && s->alpha <= 0)
        return call->does->fail(
            call, MR_EINVAL, "setting \"alpha\": the learning rate \"optimal\" needs more than 0");
    if (s->rate != MR_SGD_OPTIMAL && s->eta0 <= 0)
        return call->does->fail(
            call, MR_EINVAL, "setting \"eta0\": this learning rate needs more than 0");
    if (s->l1_ratio > 1)
        return call->does->fail(call, MR_EINVAL, "setting \"l1_ratio\": expected 0 to 1");
    return MR_OK;
}

/* Reads the parameters 2 to 7, then the dict `settings`, which overrides them. */
static int read_settings(struct mr_op_call *call, struct mr_sgd_settings *s, int64_t *seed)
{
    *s = (struct mr_sgd_settings){
        .l1_ratio = 0.15, .power_t = 0.5, .patience = 5, .fit_intercept = true};
    const struct mr_arg *dict = &call->args[9];
    int err = mr_arg_int(call, &call->args[8], "seed", 0, UINT32_MAX, seed);
    for (uint32_t i = 2; i < 8 && !err; i++)
        err = set_one(call, mr_str(call->op->params[i].name), &call->args[i], s);
    for (uint32_t i = 0; i < dict->count && !err; i++) {
        const struct mr_arg *v = &dict->items[i];
        err = mr_str_eq(v->name, MR_STR("seed")) ? mr_arg_int(call, v, "seed", 0, UINT32_MAX, seed)
                                                 : set_one(call, v->name, v, s);
    }
    return err ? err : check_settings(call, s);
}

/* ---- fit ---- */

static bool cancelled(void *ctx)
{
    struct mr_op_call *call = ctx;
    return call->does->is_cancelled(call);
}

static int ended(struct mr_op_call *call, enum mr_sgd_end end)
{
    switch (end) {
    case MR_SGD_DONE: return MR_OK;
    case MR_SGD_CANCELLED: return call->does->fail(call, MR_ECANCELED, "cancelled");
    case MR_SGD_DIVERGED: break;
    }
    return call->does->fail(call, MR_ERANGE,
        "the weights grew beyond all bounds: scale the columns (ml.standardize), or take a smaller "
        "eta0 or a larger alpha");
}

struct fit {
    struct mr_sgd_settings settings;
    struct mr_sgd_rows rows;
    struct mr_sgd_work work;
    uint32_t separators; /* number of classifiers to fit; 1 for two classes */
    struct mr_mt mt;
};

/* Returns the seed of the row shuffle, drawn in scikit-learn's order. Before it, scikit-learn draws
 * a seed of its data set; that number is drawn, too, and is not used. With several classifiers,
 * each classifier has a generator of its own, with the seed `own`. */
static uint32_t shuffle_seed(struct fit *f, uint32_t own)
{
    if (f->separators == 1) {
        (void)mr_mt_upto(&f->mt, INT32_MAX - 2);
        return (uint32_t)mr_mt_upto(&f->mt, INT32_MAX - 1);
    }
    struct mr_mt mt;
    mr_mt_init(&mt, own);
    (void)mr_mt_upto(&mt, INT32_MAX - 2);
    return (uint32_t)mr_mt_upto(&mt, INT32_MAX - 1);
}

static int fit_all(struct mr_op_call *call, struct fit *f, double *coef, double *intercept,
    int64_t *epochs, uint32_t *seeds)
{
    for (uint32_t i = 0; i < f->separators && f->separators > 1; i++)
        seeds[i] = (uint32_t)mr_mt_upto(&f->mt, INT32_MAX - 1);
    for (uint32_t i = 0; i < f->separators; i++) {
        uint32_t done = 0;
        f->rows.positive = f->separators == 1 ? 1 : i;
        f->work.weights = coef + (uint64_t)i * f->rows.columns;
        f->work.shuffle_seed = shuffle_seed(f, seeds[i]);
        memset(f->work.weights, 0, f->rows.columns * sizeof *coef);
        memset(f->work.mean, 0, f->rows.columns * sizeof *coef);
        memset(f->work.credit, 0, f->rows.columns * sizeof *coef);
        int err = ended(call, mr_sgd_fit(&f->settings, &f->rows, &f->work, &intercept[i], &done));
        if (err) return err;
        epochs[i] = done;
    }
    return MR_OK;
}

static int prepare(struct mr_op_call *call, struct fit *f, struct mr_classes *classes)
{
    int64_t seed = 0;
    uint64_t rows = 0;
    uint64_t columns = 0;
    int err = read_settings(call, &f->settings, &seed);
    if (!err) err = mr_classes_of(call, &call->args[1], "y", classes);
    if (!err) err = mr_ml_matrix(call, &call->args[0], "x", &f->rows.x, &rows, &columns);
    if (err) return err;
    if (rows != classes->rows)
        return call->does->fail(call, MR_EINVAL, "\"x\" has %llu rows, \"y\" %llu labels",
            (unsigned long long)rows, (unsigned long long)classes->rows);
    if (classes->count < 2)
        return call->does->fail(
            call, MR_EINVAL, "argument \"y\": %u class; two are needed at least", classes->count);
    if (rows > UINT32_MAX - 1 || columns > UINT32_MAX - 1)
        return call->does->fail(call, MR_ELIMIT, "at most 2^32 - 2 rows and columns");
    f->rows.of = classes->of;
    f->rows.rows = (uint32_t)rows;
    f->rows.columns = (uint32_t)columns;
    f->separators = classes->count == 2 ? 1 : classes->count;
    f->work.order = call->does->scratch(call, MR_MAX(rows, 1u) * sizeof *f->work.order);
    f->work.mean = call->does->scratch(call, MR_MAX(columns, 1u) * 2 * sizeof(double));
    if (!f->work.order || !f->work.mean) return MR_ELIMIT;
    f->work.credit = f->work.mean + columns;
    f->work.is_cancelled = cancelled;
    f->work.ctx = call;
    mr_mt_init(&f->mt, (uint32_t)seed);
    return MR_OK;
}

/* Makes a value of the classes: a tensor, or a list of texts. */
static int classes_arg(struct mr_op_call *call, const struct mr_classes *c, struct mr_arg *out)
{
    uint64_t n = c->count;
    if (c->texts) {
        struct mr_arg *items = call->does->scratch(call, c->count * sizeof *items);
        if (!items) return MR_ELIMIT;
        for (uint32_t i = 0; i < c->count; i++)
            items[i] = (struct mr_arg){
                .type = MR_ARG_TEXT, .input = MR_ARG_NO_INPUT, .bytes = c->texts[i]};
        *out = mr_ml_list(items, c->count);
        return MR_OK;
    }
    void *data = NULL;
    int err = mr_ml_tensor(call, c->values.dtype, 1, &n, &data, out);
    if (!err) memcpy(data, c->values.data, n * 8);
    return err;
}

static int run_fit(struct mr_op_call *call)
{
    struct fit f = {0};
    struct mr_classes classes;
    int err = prepare(call, &f, &classes);
    if (err) return err;
    uint64_t shape[2] = {f.separators, f.rows.columns};
    void *coef = NULL;
    void *intercept = NULL;
    void *epochs = NULL;
    struct mr_arg out[5];
    uint32_t *seeds = call->does->scratch(call, f.separators * sizeof *seeds);
    if (!seeds) return MR_ELIMIT;
    err = mr_ml_tensor(call, MR_DTYPE_F64, 2, shape, &coef, &out[0]);
    if (!err) err = mr_ml_tensor(call, MR_DTYPE_F64, 1, shape, &intercept, &out[1]);
    if (!err) err = classes_arg(call, &classes, &out[2]);
    if (!err) err = mr_ml_tensor(call, MR_DTYPE_I64, 1, shape, &epochs, &out[3]);
    if (!err) err = fit_all(call, &f, coef, intercept, epochs, seeds);
    if (err) return err;
    out[4] = mr_ml_text(losses[f.settings.loss]);
    static const char *const names[] = {"coef", "intercept", "classes", "epochs", "loss"};
    for (unsigned i = 0; i < MR_ARRAY_LEN(out); i++)
        out[i].name = mr_str(names[i]);
    struct mr_arg dict = mr_ml_dict(out, MR_ARRAY_LEN(out));
    return call->does->return_arg(call, &dict);
}

/* ---- decision, predict, proba ---- */

struct model {
    const double *coef;
    const double *intercept;
    const struct mr_arg *classes;
    uint64_t separators;
    uint64_t columns;
    uint64_t classes_count;
    struct mr_str loss;
};

static int not_a_model(struct mr_op_call *call)
{
    return call->does->fail(call, MR_EINVAL, "argument \"model\": expected what ml.sgd.fit gave");
}

static bool is_f64(const struct mr_arg *a, unsigned ndim)
{
    return a && a->type == MR_ARG_TENSOR && a->tensor->dtype == MR_DTYPE_F64 &&
           a->tensor->ndim == ndim && mr_tensor_is_contiguous(a->tensor);
}

static int open_model(struct mr_op_call *call, struct model *m)
{
    const struct mr_arg *dict = &call->args[0];
    const struct mr_arg *coef = mr_ml_member(dict, "coef");
    const struct mr_arg *intercept = mr_ml_member(dict, "intercept");
    const struct mr_arg *loss = mr_ml_member(dict, "loss");
    m->classes = mr_ml_member(dict, "classes");
    if (!is_f64(coef, 2) || !is_f64(intercept, 1) || !m->classes) return not_a_model(call);
    if (m->classes->type == MR_ARG_TENSOR && m->classes->tensor->ndim == 1)
        m->classes_count = m->classes->tensor->shape[0];
    else if (m->classes->type == MR_ARG_LIST)
        m->classes_count = m->classes->count;
    m->coef = coef->tensor->data;
    m->intercept = intercept->tensor->data;
    m->separators = coef->tensor->shape[0];
    m->columns = coef->tensor->shape[1];
    m->loss = loss && loss->type == MR_ARG_TEXT ? loss->bytes : MR_STR("");
    if (!m->separators || intercept->tensor->shape[0] != m->separators ||
        m->classes_count != (m->separators == 1 ? 2 : m->separators))
        return not_a_model(call);
    return MR_OK;
}

/* Computes the decision function into `*out`, scratch memory: one column for each classifier. */
static int decide(struct mr_op_call *call, struct model *m, uint64_t *rows_out, double **out)
{
    const double *x = NULL;
    uint64_t rows = 0;
    uint64_t columns = 0;
    int err = open_model(call, m);
    if (!err) err = mr_ml_matrix(call, &call->args[1], "x", &x, &rows, &columns);
    if (err) return err;
    if (columns != m->columns)
        return call->does->fail(call, MR_EINVAL, "\"x\" has %llu columns, the model %llu",
            (unsigned long long)columns, (unsigned long long)m->columns);
    double *d = call->does->scratch(call, MR_MAX(rows * m->separators, 1u) * sizeof *d);
    if (!d) return MR_ELIMIT;
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t k = 0; k < m->separators; k++)
            d[i * m->separators + k] =
                mr_sgd_dot(x + i * columns, m->coef + k * columns, (uint32_t)columns) +
                m->intercept[k];
    *rows_out = rows;
    *out = d;
    return MR_OK;
}

static int run_decision(struct mr_op_call *call)
{
    struct model m = {0};
    uint64_t rows = 0;
    double *d = NULL;
    int err = decide(call, &m, &rows, &d);
    if (err) return err;
    uint64_t shape[2] = {rows, m.separators};
    void *out = call->does->return_tensor(call, MR_DTYPE_F64, m.separators == 1 ? 1 : 2, shape);
    if (!out) return MR_ELIMIT;
    memcpy(out, d, rows * m.separators * sizeof *d);
    return MR_OK;
}

static uint64_t winner(const struct model *m, const double *d)
{
    if (m->separators == 1) return d[0] > 0;
    uint64_t best = 0;
    for (uint64_t k = 1; k < m->separators; k++)
        if (d[k] > d[best]) best = k;
    return best;
}

static int run_predict(struct mr_op_call *call)
{
    struct model m = {0};
    uint64_t rows = 0;
    double *d = NULL;
    int err = decide(call, &m, &rows, &d);
    if (err) return err;
    if (m.classes->type == MR_ARG_LIST) {
        if (rows > UINT32_MAX) return call->does->fail(call, MR_ELIMIT, "too many rows");
        struct mr_arg *items = call->does->scratch(call, MR_MAX(rows, 1u) * sizeof *items);
        if (!items) return MR_ELIMIT;
        for (uint64_t i = 0; i < rows; i++)
            items[i] = m.classes->items[winner(&m, d + i * m.separators)];
        struct mr_arg list = mr_ml_list(items, (uint32_t)rows);
        return call->does->return_arg(call, &list);
    }
    const struct mr_tensor *c = m.classes->tensor;
    size_t bytes = mr_dtype_bytes(c->dtype);
    char *out = call->does->return_tensor(call, c->dtype, 1, &rows);
    if (!out) return MR_ELIMIT;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t at = winner(&m, d + i * m.separators);
        memcpy(out + i * bytes, (const char *)c->data + (int64_t)at * c->strides[0], bytes);
    }
    return MR_OK;
}

/* Computes the probabilities of classes: 1 / (1 + exp(-d)), or for the modified Huber loss (clip(d,
 * -1, 1) + 1) / 2. The probabilities of several classes are normalised to the sum 1, or are equal
 * if all of them are 0. */
static void probabilities(const struct model *m, bool huber, const double *d, double *out)
{
    uint64_t n = m->classes_count;
    double sum = 0;
    for (uint64_t k = 0; k < m->separators; k++) {
        double v = huber ? (fmin(1, fmax(-1, d[k])) + 1) / 2 : 1 / (1 + exp(-d[k]));
        out[m->separators == 1 ? 1 : k] = v;
        sum += v;
    }
    if (m->separators == 1) {
        out[0] = 1 - out[1];
        return;
    }
    for (uint64_t k = 0; k < n; k++)
        out[k] = sum == 0 ? 1 / (double)n : out[k] / sum;
}

static int run_proba(struct mr_op_call *call)
{
    struct model m = {0};
    uint64_t rows = 0;
    double *d = NULL;
    int err = decide(call, &m, &rows, &d);
    if (err) return err;
    bool huber = mr_str_eq(m.loss, mr_str(losses[MR_SGD_MODIFIED_HUBER]));
    if (!huber && !mr_str_eq(m.loss, mr_str(losses[MR_SGD_LOG])))
        return call->does->fail(call, MR_EINVAL,
            "a model learnt with the loss \"%.*s\" gives no probabilities; log and modified_huber "
            "do",
            (int)MR_MIN(m.loss.n, 40u), m.loss.p);
    uint64_t shape[2] = {rows, m.classes_count};
    double *out = call->does->return_tensor(call, MR_DTYPE_F64, 2, shape);
    if (!out) return MR_ELIMIT;
    for (uint64_t i = 0; i < rows; i++)
        probabilities(&m, huber, d + i * m.separators, out + i * m.classes_count);
    return MR_OK;
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param fitted[] = {
    {"x", MR_TAKES_ARRAY, NULL, "Rows and columns, preferably standardised."},
    {"y", MR_TAKES_TENSOR | MR_TAKES_LIST, NULL, "One label for each row: numbers or texts."},
    {"loss", MR_TAKES_TEXT, "\"hinge\"",
        "Loss: hinge, log, squared_hinge, modified_huber, squared_error or perceptron."},
    {"penalty", MR_TAKES_TEXT, "\"l2\"", "Penalty: l1, l2, elasticnet or none."},
    {"alpha", MR_TAKES_REAL, "0.0001", "Weight of the penalty."},
    {"epochs", MR_TAKES_INT, "1000", "Largest number of passes over the rows."},
    {"tol", MR_TAKES_REAL | MR_TAKES_NIL, "0.001",
        "The fit stops when the loss has not improved by this much for `patience` epochs."},
    {"shuffle", MR_TAKES_BOOL, "true", "Use another order of rows in each epoch."},
    {"seed", MR_TAKES_INT, "0", "Seed of the shuffle: scikit-learn's random_state."},
    {"settings", MR_TAKES_DICT, "{}",
        "Any of these by name, and l1_ratio (0.15), learning_rate (optimal, constant, invscaling, "
        "adaptive), eta0 (0), power_t (0.5), fit_intercept, average, patience (5)."},
};
static const struct mr_op_param used[] = {
    {"model", MR_TAKES_DICT, NULL, "The result of ml.sgd.fit."},
    {"x", MR_TAKES_ARRAY, NULL, "Rows and columns."},
};

const struct mr_op_desc *mr_ml_linear_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("ml.sgd.fit", D, fitted, 10000000, run_fit,
            "dict of coef, intercept, classes, epochs, loss",
            "Trains a linear classifier by stochastic gradient descent, as scikit-learn's "
            "SGDClassifier."),
        MR_OP_ROW("ml.sgd.predict", D, used, 100000, run_predict, "tensor, or list of texts",
            "Predicts the class of each row."),
        MR_OP_ROW("ml.sgd.decision", D, used, 100000, run_decision, "f64 tensor",
            "Computes the decision function: the signed distance of each row for each class."),
        MR_OP_ROW("ml.sgd.proba", D, used, 100000, run_proba, "f64 tensor [rows, classes]",
            "Computes the probability of each class, for models with the loss log or "
            "modified_huber."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
