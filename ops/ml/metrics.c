/* Metrics of predictions: ml.accuracy, ml.confusion_matrix, ml.classification_report, ml.log_loss.
 * Definitions, names and the order of classes are scikit-learn's. */
#include "ops/ml/ml.h"

#include <float.h>
#include <math.h>

#define MATRIX_CLASSES_MAX 4096

/* ---- counting ---- */

struct counts {
    /* The classes of the true labels. The predicted labels have the same class numbers. */
    struct mr_classes classes;
    uint64_t *hit; /* by class: rows that were predicted correctly */
    uint64_t *predicted;
    uint64_t *actual;
    uint64_t correct;
};

/* Reads the arguments 0 and 1, the true and the predicted labels. */
static int both(struct mr_op_call *call, struct mr_classes pair[2])
{
    const struct mr_arg *ys[2] = {&call->args[0], &call->args[1]};
    static const char *const names[2] = {"y_true", "y_pred"};
    int err = mr_classes_of_all(call, ys, names, 2, pair);
    if (err) return err;
    if (pair[0].rows != pair[1].rows)
        return call->does->fail(call, MR_EINVAL, "\"y_true\" has %llu labels, \"y_pred\" %llu",
            (unsigned long long)pair[0].rows, (unsigned long long)pair[1].rows);
    if (!pair[0].rows) return call->does->fail(call, MR_EINVAL, "no labels");
    return MR_OK;
}

static int count(struct mr_op_call *call, struct counts *c)
{
    struct mr_classes pair[2];
    int err = both(call, pair);
    if (err) return err;
    uint64_t n = pair[0].count;
    *c = (struct counts){.classes = pair[0]};
    c->hit = call->does->scratch(call, 3 * n * sizeof *c->hit);
    if (!c->hit) return MR_ELIMIT;
    c->predicted = c->hit + n;
    c->actual = c->hit + 2 * n;
    for (uint64_t i = 0; i < pair[0].rows; i++) {
        uint32_t a = pair[0].of[i];
        uint32_t p = pair[1].of[i];
        c->actual[a]++;
        c->predicted[p]++;
        c->hit[a] += a == p;
        c->correct += a == p;
    }
    return MR_OK;
}

static int run_accuracy(struct mr_op_call *call)
{
    struct counts c;
    int err = count(call, &c);
    if (err) return err;
    return call->does->return_float(call, (double)c.correct / (double)c.classes.rows);
}

static int run_confusion(struct mr_op_call *call)
{
    struct mr_classes pair[2];
    int err = both(call, pair);
    if (err) return err;
    uint64_t n = pair[0].count;
    if (n > MATRIX_CLASSES_MAX)
        return call->does->fail(call, MR_ELIMIT, "%llu classes, at most %d are allowed",
            (unsigned long long)n, MATRIX_CLASSES_MAX);
    uint64_t shape[2] = {n, n};
    int64_t *out = call->does->return_tensor(call, MR_DTYPE_I64, 2, shape);
    if (!out) return MR_ELIMIT;
    memset(out, 0, n * n * sizeof *out);
    for (uint64_t i = 0; i < pair[0].rows; i++)
        out[pair[0].of[i] * n + pair[1].of[i]]++;
    return MR_OK;
}

/* ---- the report ---- */

enum { PRECISION, RECALL, F1, SUPPORT, MEASURES };

struct row {
    double v[MEASURES];
};

static double part(uint64_t of, uint64_t whole)
{
    return whole ? (double)of / (double)whole : 0;
}

static struct row row_of(const struct counts *c, uint32_t i)
{
    struct row r;
    r.v[PRECISION] = part(c->hit[i], c->predicted[i]);
    r.v[RECALL] = part(c->hit[i], c->actual[i]);
    double sum = r.v[PRECISION] + r.v[RECALL];
    r.v[F1] = sum > 0 ? 2 * r.v[PRECISION] * r.v[RECALL] / sum : 0;
    r.v[SUPPORT] = (double)c->actual[i];
    return r;
}

/* Makes a dict of a row of the report, in memory of the call. */
static int row_arg(struct mr_op_call *call, const struct row *r, struct mr_arg *out)
{
    static const char *const names[MEASURES] = {"precision", "recall", "f1-score", "support"};
    struct mr_arg *items = call->does->scratch(call, MEASURES * sizeof *items);
    if (!items) return MR_ELIMIT;
    for (unsigned k = 0; k < MEASURES; k++)
        items[k] = mr_ml_named(
            names[k], k == SUPPORT ? mr_ml_int((int64_t)r->v[k]) : mr_ml_float(r->v[k]));
    *out = mr_ml_dict(items, MEASURES);
    return MR_OK;
}

static int run_report(struct mr_op_call *call)
{
    struct counts c;
    int err = count(call, &c);
    if (err) return err;
    uint32_t n = c.classes.count;
    double rows = (double)c.classes.rows;
    struct mr_arg *items = call->does->scratch(call, (n + 3) * sizeof *items);
    if (!items) return MR_ELIMIT;
    struct row macro = {0};
    struct row weighted = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct row r = row_of(&c, i);
        const char *name = mr_class_text(call, &c.classes, i);
        err = name ? row_arg(call, &r, &items[i]) : MR_ELIMIT;
        if (err) return err;
        items[i].name = mr_str(name);
        for (unsigned k = 0; k < SUPPORT; k++) {
            macro.v[k] += r.v[k] / n;
            weighted.v[k] += r.v[k] * (double)c.actual[i] / rows;
        }
    }
    macro.v[SUPPORT] = weighted.v[SUPPORT] = rows;
    err = row_arg(call, &macro, &items[n + 1]);
    if (!err) err = row_arg(call, &weighted, &items[n + 2]);
    if (err) return err;
    items[n] = mr_ml_named("accuracy", mr_ml_float((double)c.correct / rows));
    items[n + 1].name = MR_STR("macro avg");
    items[n + 2].name = MR_STR("weighted avg");
    struct mr_arg dict = mr_ml_dict(items, n + 3);
    return call->does->return_arg(call, &dict);
}

/* ---- log loss ---- */

static double clipped(double p)
{
    return fmin(1 - DBL_EPSILON, fmax(DBL_EPSILON, p));
}

/* Returns -log of the probability that a row gives its true class, after the probability is clipped
 * and divided by the row's sum. */
static double row_loss(const double *p, uint64_t columns, uint32_t label)
{
    if (columns == 1) return -log(label ? clipped(p[0]) : 1 - clipped(p[0]));
    double sum = 0;
    for (uint64_t k = 0; k < columns; k++)
        sum += clipped(p[k]);
    return -log(clipped(p[label]) / sum);
}

static int run_log_loss(struct mr_op_call *call)
{
    const struct mr_arg *ys[2] = {&call->args[0], &call->args[2]};
    static const char *const names[2] = {"y_true", "classes"};
    struct mr_classes c[2];
    const double *p = NULL;
    uint64_t rows = 0;
    uint64_t columns = 0;
    uint32_t given = call->args[2].type == MR_ARG_NIL ? 1 : 2;
    int err = mr_classes_of_all(call, ys, names, given, c);
    if (!err) err = mr_ml_matrix(call, &call->args[1], "proba", &p, &rows, &columns);
    if (err) return err;
    if (rows != c[0].rows || !rows)
        return call->does->fail(call, MR_EINVAL, "%llu labels and %llu rows of probabilities",
            (unsigned long long)c[0].rows, (unsigned long long)rows);
    if (c[0].count != MR_MAX(columns, 2u))
        return call->does->fail(call, MR_EINVAL,
            "%u classes for %llu columns of probabilities; give all of them as \"classes\"",
            c[0].count, (unsigned long long)columns);
    double sum = 0;
    for (uint64_t i = 0; i < rows; i++)
        sum += row_loss(p + i * columns, columns, c[0].of[i]);
    return call->does->return_float(call, sum / (double)rows);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param compared[] = {
    {"y_true", MR_TAKES_TENSOR | MR_TAKES_LIST, NULL, "The true labels: numbers or texts."},
    {"y_pred", MR_TAKES_TENSOR | MR_TAKES_LIST, NULL, "The predicted labels of the same rows."},
};
static const struct mr_op_param likely[] = {
    {"y_true", MR_TAKES_TENSOR | MR_TAKES_LIST, NULL, "The true labels: numbers or texts."},
    {"proba", MR_TAKES_ARRAY, NULL,
        "Probabilities, one column for each class, ascending; for two classes also one column, "
        "for the second class."},
    {"classes", MR_TAKES_TENSOR | MR_TAKES_LIST | MR_TAKES_NIL, "null",
        "All classes, if y_true does not contain all of them."},
};

const struct mr_op_desc *mr_ml_metrics_ops(uint32_t *count_out)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("ml.accuracy", D, compared, 20000, run_accuracy, "float",
            "Computes the share of rows whose class was predicted correctly."),
        MR_OP_ROW("ml.confusion_matrix", D, compared, 20000, run_confusion,
            "i64 tensor [classes, classes]",
            "Counts rows by true class (row) and predicted class (column)."),
        MR_OP_ROW("ml.classification_report", D, compared, 50000, run_report, "dict of dicts",
            "Computes precision, recall, f1-score and support of each class, accuracy, and "
            "averages."),
        MR_OP_ROW("ml.log_loss", D, likely, 50000, run_log_loss, "float",
            "Computes the mean of -log of the probability of the true class."),
    };
    *count_out = MR_ARRAY_LEN(ops);
    return ops;
}
