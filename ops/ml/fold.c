/* Cross-validation folds and standardisation: ml.kfold, ml.fold, ml.standardize. Folds equal those
 * of scikit-learn's KFold and StratifiedKFold with the same seed. */
#include "ops/ml/ml.h"

#include "base/assert.h"
#include "ops/ml/random.h"

#include <float.h>
#include <math.h>

/* ---- folds ---- */

struct folding {
    uint64_t n;
    uint32_t k;
    bool shuffle;
    struct mr_mt mt;
    int64_t *fold; /* for each row, the fold whose test rows include it */
};

/* Makes the folds of KFold: blocks of nearly equal length over the rows, in order or shuffled. */
static int plain_folds(struct mr_op_call *call, struct folding *f)
{
    int64_t *order = call->does->scratch(call, MR_MAX(f->n, 1u) * sizeof *order);
    if (!order) return MR_ELIMIT;
    for (uint64_t i = 0; i < f->n; i++)
        order[i] = (int64_t)i;
    if (f->shuffle) mr_mt_shuffle_i64(&f->mt, order, f->n);
    uint64_t at = 0;
    for (uint32_t k = 0; k < f->k; k++)
        for (uint64_t end = at + f->n / f->k + (k < f->n % f->k); at < end; at++)
            f->fold[order[at]] = k;
    return MR_OK;
}

/* Sets the `number` of each class: its place in the order of first appearance, as scikit-learn
 * counts. */
static void by_appearance(const struct mr_classes *c, uint32_t *number)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < c->count; i++)
        number[i] = UINT32_MAX;
    for (uint64_t i = 0; i < c->rows && seen < c->count; i++)
        if (number[c->of[i]] == UINT32_MAX) number[c->of[i]] = seen++;
}

/* Computes for each class and fold the number of test rows. Rows sorted by class are assigned to
 * the folds in turn. */
static void deal(const uint64_t *sizes, uint32_t classes, uint32_t k, uint64_t *share)
{
    uint64_t at = 0;
    for (uint32_t c = 0; c < classes; c++)
        for (uint64_t i = 0; i < sizes[c]; i++, at++)
            share[(uint64_t)c * k + at % k]++;
}

static int stratified_folds(
    struct mr_op_call *call, struct folding *f, const struct mr_classes *classes)
{
    uint32_t c = classes->count;
    uint32_t *number = call->does->scratch(call, MR_MAX(c, 1u) * sizeof *number);
    uint64_t *sizes = call->does->scratch(call, MR_MAX(c, 1u) * sizeof *sizes);
    uint64_t *share = call->does->scratch(call, MR_MAX(c, 1u) * (uint64_t)f->k * sizeof *share);
    uint64_t *next = call->does->scratch(call, MR_MAX(c, 1u) * sizeof *next);
    int64_t *block = call->does->scratch(call, MR_MAX(f->n, 1u) * sizeof *block);
    if (!number || !sizes || !share || !next || !block) return MR_ELIMIT;
    by_appearance(classes, number);
    uint64_t largest = 0;
    for (uint64_t i = 0; i < f->n; i++)
        sizes[number[classes->of[i]]]++;
    for (uint32_t j = 0; j < c; j++)
        largest = MR_MAX(largest, sizes[j]);
    if (largest < f->k)
        return call->does->fail(call, MR_EINVAL, "%u folds, but no class has more than %llu rows",
            f->k, (unsigned long long)largest);
    deal(sizes, c, f->k, share);
    uint64_t at = 0;
    for (uint32_t j = 0; j < c; j++) { /* writes the folds of the rows of class j to `block` */
        next[j] = at;
        for (uint32_t k = 0; k < f->k; k++)
            for (uint64_t i = 0; i < share[(uint64_t)j * f->k + k]; i++)
                block[at++] = k;
        mr_assert(at - next[j] == sizes[j]);
        if (f->shuffle) mr_mt_shuffle_i64(&f->mt, block + next[j], sizes[j]);
    }
    for (uint64_t i = 0; i < f->n; i++)
        f->fold[i] = block[next[number[classes->of[i]]]++];
    return MR_OK;
}

static int run_kfold(struct mr_op_call *call)
{
    const struct mr_arg *y = &call->args[0];
    struct folding f = {.shuffle = call->args[2].boolean};
    bool stratified = call->args[4].boolean;
    int64_t k = 0;
    int64_t seed = 0;
    int64_t n = 0;
    struct mr_classes classes = {0};
    int err = mr_arg_int(call, &call->args[1], "folds", 2, 65535, &k);
    if (!err) err = mr_arg_int(call, &call->args[3], "seed", 0, UINT32_MAX, &seed);
    if (err) return err;
    if (y->type == MR_ARG_INT || y->type == MR_ARG_UINT) {
        if (stratified)
            return call->does->fail(
                call, MR_EINVAL, "argument \"y\": stratified folds need the labels, not a number");
        err = mr_arg_int(call, y, "y", 0, UINT32_MAX, &n);
    } else if (stratified) {
        err = mr_classes_of(call, y, "y", &classes);
        n = (int64_t)classes.rows;
    } else {
        struct mr_tensor t = {0};
        if (y->type == MR_ARG_TENSOR) t = *y->tensor;
        if (y->type == MR_ARG_TENSOR && !t.ndim)
            return call->does->fail(call, MR_EINVAL, "argument \"y\": a tensor without rows");
        n = y->type == MR_ARG_TENSOR ? (int64_t)t.shape[0] : (int64_t)y->count;
    }
    if (err) return err;
    if (n < k)
        return call->does->fail(
            call, MR_EINVAL, "%lld folds of %lld rows", (long long)k, (long long)n);
    f.n = (uint64_t)n;
    f.k = (uint32_t)k;
    f.fold = call->does->return_tensor(call, MR_DTYPE_I64, 1, &f.n);
    if (!f.fold) return MR_ELIMIT;
    mr_mt_init(&f.mt, (uint32_t)seed);
    return stratified ? stratified_folds(call, &f, &classes) : plain_folds(call, &f);
}

static int run_fold(struct mr_op_call *call)
{
    struct mr_tensor t;
    int64_t fold = 0;
    int err = mr_array_tensor(call, &call->args[0], "folds", &t);
    if (!err) err = mr_arg_int(call, &call->args[1], "fold", 0, 65534, &fold);
    if (err) return err;
    bool test = mr_str_eq(call->args[2].bytes, MR_STR("test"));
    if (!test && !mr_str_eq(call->args[2].bytes, MR_STR("train")))
        return call->does->fail(call, MR_EINVAL, "argument \"part\": expected train or test");
    if (t.dtype != MR_DTYPE_I64 || t.ndim != 1 || !mr_tensor_is_contiguous(&t))
        return call->does->fail(call, MR_EINVAL, "argument \"folds\": expected what ml.kfold gave");
    const int64_t *of = t.data;
    uint64_t tested = 0;
    for (uint64_t i = 0; i < t.shape[0]; i++)
        tested += of[i] == fold;
    if (!tested)
        return call->does->fail(
            call, MR_ERANGE, "argument \"fold\": no row is in fold %lld", (long long)fold);
    uint64_t rows = test ? tested : t.shape[0] - tested;
    int64_t *out = call->does->return_tensor(call, MR_DTYPE_I64, 1, &rows);
    if (!out) return MR_ELIMIT;
    for (uint64_t i = 0; i < t.shape[0]; i++)
        if ((of[i] == fold) == test) *out++ = (int64_t)i;
    return MR_OK;
}

/* ---- standardize ---- */

/* Reads the mean and the divisor of each column from moments of shape [4, columns]. The divisor is
 * the standard deviation, or 1 if the column is constant up to rounding. scikit-learn has the same
 * bound on this rounding. */
static void scales_of(const double *moments, uint64_t columns, double *mean, double *divide)
{
    for (uint64_t j = 0; j < columns; j++) {
        double n = moments[j];
        double variance = moments[2 * columns + j] / n;
        mean[j] = moments[columns + j];
        double slack = n * mean[j] * DBL_EPSILON;
        bool constant = !(variance > n * DBL_EPSILON * variance + slack * slack);
        divide[j] = constant ? 1 : sqrt(variance);
    }
}

static int check_moments(
    struct mr_op_call *call, const struct mr_tensor *m, const struct mr_tensor *x)
{
    bool fits = m->dtype == MR_DTYPE_F64 && m->ndim == 2 && m->shape[0] == 4 &&
                m->shape[1] == x->shape[1] && mr_tensor_is_contiguous(m);
    if (fits) return MR_OK;
    return call->does->fail(call, MR_EINVAL,
        "argument \"moments\": expected array.moments along axis 0 of %llu columns",
        (unsigned long long)x->shape[1]);
}

static void standardize_f64(const double *x, uint64_t rows, uint64_t columns, const double *mean,
    const double *divide, double *out)
{
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            out[i * columns + j] = (x[i * columns + j] - mean[j]) / divide[j];
}

static int run_standardize(struct mr_op_call *call)
{
    struct mr_tensor x;
    struct mr_tensor m;
    enum mr_dtype dtype = MR_DTYPE_NONE;
    int err = mr_array_tensor(call, &call->args[0], "x", &x);
    if (!err) err = mr_array_tensor(call, &call->args[1], "moments", &m);
    if (!err) err = mr_array_dtype(call, &call->args[2], "dtype", &dtype);
    if (err) return err;
    if (dtype != MR_DTYPE_F32 && dtype != MR_DTYPE_F64)
        return call->does->fail(call, MR_EINVAL, "argument \"dtype\": expected f32 or f64");
    if (x.ndim != 2)
        return call->does->fail(
            call, MR_EINVAL, "argument \"x\": expected rows and columns, got %u axes", x.ndim);
    err = check_moments(call, &m, &x);
    if (err) return err;
    uint64_t rows = x.shape[0];
    uint64_t columns = x.shape[1];
    const double *from = NULL;
    double *mean = call->does->scratch(call, MR_MAX(columns, 1u) * 2 * sizeof *mean);
    if (!mean) return MR_ELIMIT;
    scales_of(m.data, columns, mean, mean + columns);
    err = mr_ml_matrix(call, &call->args[0], "x", &from, &rows, &columns);
    if (err) return err;
    void *data = call->does->return_tensor(call, dtype, 2, x.shape);
    double *to = dtype == MR_DTYPE_F64 ? data : call->does->scratch(call, rows * columns * 8 + 8);
    if (!data || !to) return MR_ELIMIT;
    standardize_f64(from, rows, columns, mean, mean + columns, to);
    if (dtype == MR_DTYPE_F64) return MR_OK;
    struct mr_tensor wide;
    struct mr_tensor narrow;
    mr_tensor_init(&wide, MR_DTYPE_F64, 2, x.shape, to);
    mr_tensor_init(&narrow, MR_DTYPE_F32, 2, x.shape, data);
    return mr_array_cast(call, &wide, &narrow);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param folded[] = {
    {"y", MR_TAKES_INT | MR_TAKES_TENSOR | MR_TAKES_LIST, NULL,
        "Number of rows, or a value with as many rows; for stratified folds, the labels."},
    {"folds", MR_TAKES_INT, "5", "Number of folds, 2 to 65,535."},
    {"shuffle", MR_TAKES_BOOL, "false", "Assign rows to folds at random instead of in blocks."},
    {"seed", MR_TAKES_INT, "0", "Seed of the shuffle: scikit-learn's random_state."},
    {"stratified", MR_TAKES_BOOL, "false", "Keep the proportions of the classes in each fold."},
};
static const struct mr_op_param one_fold[] = {
    {"folds", MR_TAKES_TENSOR, NULL, "The result of ml.kfold."},
    {"fold", MR_TAKES_INT, NULL, "Index of the fold, from 0."},
    {"part", MR_TAKES_TEXT, "\"test\"", "test: the fold's rows; train: all others."},
};
static const struct mr_op_param standardized[] = {
    {"x", MR_TAKES_ARRAY, NULL, "Rows and columns."},
    {"moments", MR_TAKES_TENSOR, NULL,
        "Result of array.moments along axis 0 (or of array.moments_merge) on the reference rows."},
    {"dtype", MR_TAKES_TEXT, "\"f64\"", "Type of the result: f32 or f64."},
};

const struct mr_op_desc *mr_ml_fold_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("ml.kfold", D, folded, 20000, run_kfold, "i64 tensor [rows]",
            "Returns the fold in which each row is tested, as scikit-learn's KFold and "
            "StratifiedKFold."),
        MR_OP_ROW("ml.fold", D, one_fold, 10000, run_fold, "i64 tensor [rows of the part]",
            "Returns the row numbers of one fold for testing or training, ascending."),
        MR_OP_ROW("ml.standardize", D, standardized, 20000, run_standardize,
            "tensor [rows, columns]",
            "Subtracts from each column its mean and divides by its standard deviation; a "
            "constant column is not divided."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
