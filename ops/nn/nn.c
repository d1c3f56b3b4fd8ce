/* Operators on models. A model is a neural network as a value. A model argument is a model,
 * or a dict with the model as "model", such as the result of nn.fit. Examples lie along axis 0 and
 * have any dtype; their other axes match the model's input or have as many elements. nn.fit and
 * training sessions train networks; these operators do not. */
#include "ops/nn/nn.h"

#include "nn/model/model_value.h"
#include "nn/model/npz.h"
#include "nn/net/rows.h"
#include "ops/arg.h"
#include "ops/array/array.h"
#include "store/object/format/json.h"

#include <inttypes.h>

#define PIECE 1024 /* examples that are converted between two checks for cancellation */

/* ---- arguments ------------------------------------------------------------------------------- */

struct model {
    struct mr_nn_model *m;
    struct mr_nn_model_view view;
    struct mr_nn_rows *rows;
};

static void model_fini(struct model *m)
{
    mr_nn_rows_free(&m->rows);
    mr_nn_model_free(&m->m);
}

static const struct mr_arg *model_inside(const struct mr_arg *a)
{
    for (uint32_t i = 0; a->type == MR_ARG_DICT && i < a->count; i++)
        if (mr_str_eq(a->items[i].name, MR_STR("model"))) return &a->items[i];
    return a;
}

static int model_arg(struct mr_op_call *call, const struct mr_arg *arg, struct model *out)
{
    const struct mr_arg *a = model_inside(arg);
    if (a->type != MR_ARG_VALUE)
        return call->does->fail(call, MR_EINVAL,
            "argument \"model\": expected a model, or a dict with one as \"model\", got %s",
            mr_arg_type_name(a->type));
    struct mr_value v;
    struct mr_error why = {0};
    int err = mr_value_check(a->extent, &v, &why);
    if (!err) err = mr_nn_model_value_open(&v, &out->view, &out->m, &why);
    if (err) return call->does->fail(call, err, "argument \"model\": %s", why.text);
    out->rows = mr_nn_rows_new(out->m, 0);
    return MR_OK;
}

/* Examples, which are read in place or converted piece by piece. */
struct examples {
    struct mr_tensor t;
    uint64_t n, numbers; /* how many examples there are; how many elements each has */
    /* Conversion buffer. NULL: the examples are contiguous f32 and read in place. */
    float *piece;
};

static int examples_arg(struct mr_op_call *call, const struct model *m, struct examples *out)
{
    int err = mr_array_tensor(call, &call->args[1], "x", &out->t);
    if (err) return err;
    const struct mr_tensor *t = &out->t;
    out->n = t->ndim ? t->shape[0] : 0;
    out->numbers = 1;
    for (unsigned i = 1; i < t->ndim; i++)
        out->numbers *= t->shape[i];
    uint64_t wants = mr_nn_shape_count(&m->m->input);
    if (!t->ndim || out->numbers != wants) {
        char text[MR_TENSOR_TEXT_MAX];
        mr_tensor_text(t->dtype, t->ndim, t->shape, text);
        return call->does->fail(call, MR_EINVAL,
            "argument \"x\": expected examples of %" PRIu64
            " numbers along axis 0, as the model's input, got %s",
            wants, text);
    }
    if (t->dtype == MR_DTYPE_F32 && mr_tensor_is_contiguous(t)) return MR_OK;
    uint64_t piece = MR_MIN(MR_MAX(out->n, (uint64_t)1), (uint64_t)PIECE);
    out->piece = call->does->scratch(call, piece * wants * sizeof(float));
    return out->piece ? MR_OK : MR_ELIMIT;
}

static int examples_at(
    struct mr_op_call *call, const struct examples *x, uint64_t at, uint64_t n, const float **out)
{
    if (call->does->is_cancelled(call)) return call->does->fail(call, MR_ECANCELED, "cancelled");
    const char *p = (const char *)x->t.data;
    *out = (const float *)(const void *)p + at * x->numbers;
    if (!x->piece) return MR_OK;
    struct mr_tensor from = x->t, to;
    from.data = p + (int64_t)at * x->t.strides[0];
    from.shape[0] = n;
    mr_tensor_init(&to, MR_DTYPE_F32, from.ndim, from.shape, x->piece);
    *out = x->piece;
    return mr_array_cast(call, &from, &to);
}

static int class_numbers(
    struct mr_op_call *call, const struct mr_tensor *t, uint64_t n, struct mr_nn_labels *out)
{
    int64_t *wide = call->does->scratch(call, MR_MAX(n, (uint64_t)1) * sizeof *wide);
    int32_t *index = call->does->scratch(call, MR_MAX(n, (uint64_t)1) * sizeof *index);
    if (!wide || !index) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, MR_DTYPE_I64, t->ndim, t->shape, wide);
    int err = mr_array_cast(call, t, &to);
    if (err) return err;
    for (uint64_t i = 0; i < n; i++) {
        if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
            return call->does->fail(call, MR_ERANGE,
                "argument \"y\": label of example %" PRIu64 " is %" PRId64 ", which is no class", i,
                wide[i]);
        index[i] = (int32_t)wide[i];
    }
    out->index = index;
    return MR_OK;
}

/* Reads labels. Integers are class numbers; floats are rows in the shape of the model's output. */
static int labels_arg(
    struct mr_op_call *call, const struct model *m, uint64_t n, struct mr_nn_labels *out)
{
    struct mr_tensor t;
    int err = mr_array_tensor(call, &call->args[2], "y", &t);
    if (err) return err;
    bool rows = mr_dtype_is_float(t.dtype);
    uint64_t labels = mr_nn_labels_per_example(m->m), outputs = mr_nn_shape_count(&m->m->output);
    uint64_t wants = n * (rows ? outputs : labels);
    if (!t.ndim || t.shape[0] != n || mr_tensor_elements(&t) != wants) {
        char text[MR_TENSOR_TEXT_MAX];
        mr_tensor_text(t.dtype, t.ndim, t.shape, text);
        return call->does->fail(call, MR_EINVAL,
            "argument \"y\": expected %" PRIu64 " class numbers or %" PRIu64 " rows of %" PRIu64
            " floats, got %s",
            n * labels, n, outputs, text);
    }
    if (!rows) return class_numbers(call, &t, wants, out);
    float *copy = call->does->scratch(call, MR_MAX(wants, (uint64_t)1) * sizeof *copy);
    if (!copy) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, MR_DTYPE_F32, t.ndim, t.shape, copy);
    out->rows = copy;
    return mr_array_cast(call, &t, &to);
}

/* ---- nn.predict, nn.evaluate ----------------------------------------------------------------- */

static int predict(struct mr_op_call *call, struct model *m)
{
    struct examples x = {0};
    int err = model_arg(call, &call->args[0], m);
    if (!err) err = examples_arg(call, m, &x);
    if (err) return err;
    const struct mr_nn_shape *s = &m->m->output;
    uint64_t shape[MR_NN_RANK_MAX + 1] = {x.n}, k = mr_nn_shape_count(s);
    for (uint32_t i = 0; i < s->rank; i++)
        shape[i + 1] = s->dims[i];
    float *out = call->does->return_tensor(call, MR_DTYPE_F32, s->rank + 1, shape);
    if (!out) return MR_ELIMIT;
    for (uint64_t at = 0; at < x.n; at += PIECE) {
        uint64_t n = MR_MIN(x.n - at, (uint64_t)PIECE);
        const float *piece = NULL;
        struct mr_error why = {0};
        err = examples_at(call, &x, at, n, &piece);
        if (err) return err;
        err = mr_nn_rows_predict(m->rows, m->view.params, piece, n, out + at * k, &why);
        if (err) return call->does->fail(call, err, "%s", why.text);
    }
    return MR_OK;
}

static int run_predict(struct mr_op_call *call)
{
    MR_AUTO(model_fini) struct model m = {0};
    return predict(call, &m);
}

static int return_score(
    struct mr_op_call *call, enum mr_nn_loss loss, const struct mr_nn_score *score, uint64_t n)
{
    double each = score->examples ? (double)score->examples : 1;
    MR_AUTO(mr_buf_fini) struct mr_buf b;
    mr_buf_init(&b, 1024);
    mr_pack_map(&b, 4);
    mr_pack_text(&b, MR_STR("loss"));
    mr_pack_float(&b, score->loss_sum / each);
    mr_pack_text(&b, mr_str(mr_nn_loss_name(loss)));
    mr_pack_float(&b, score->loss_sum / each);
    mr_pack_text(&b, MR_STR("accuracy"));
    mr_pack_float(&b, (double)score->correct / each);
    mr_pack_text(&b, MR_STR("examples"));
    mr_pack_uint(&b, n);
    return call->does->return_pack(call, mr_buf_str(&b));
}

static int loss_arg(struct mr_op_call *call, const struct mr_arg *a, enum mr_nn_loss *out)
{
    char name[64] = {0};
    memcpy(name, a->bytes.p, MR_MIN(a->bytes.n, sizeof name - 1));
    struct mr_error why = {0};
    int err = mr_nn_loss_parse(name, out, &why);
    return err ? call->does->fail(call, err, "argument \"loss\": %s", why.text) : MR_OK;
}

static int evaluate(struct mr_op_call *call, struct model *m)
{
    struct examples x = {0};
    struct mr_nn_labels y = {0};
    struct mr_nn_score score = {0};
    enum mr_nn_loss loss = MR_NN_CROSS_ENTROPY;
    int err = model_arg(call, &call->args[0], m);
    if (!err) err = examples_arg(call, m, &x);
    if (!err) err = labels_arg(call, m, x.n, &y);
    if (!err) err = loss_arg(call, &call->args[3], &loss);
    if (err) return err;
    uint64_t labels = mr_nn_labels_per_example(m->m), k = mr_nn_shape_count(&m->m->output);
    for (uint64_t at = 0; at < x.n; at += PIECE) {
        uint64_t n = MR_MIN(x.n - at, (uint64_t)PIECE);
        const float *piece = NULL;
        struct mr_error why = {0};
        struct mr_nn_labels some = {
            y.index ? y.index + at * labels : NULL, y.rows ? y.rows + at * k : NULL};
        err = examples_at(call, &x, at, n, &piece);
        if (err) return err;
        err = mr_nn_rows_score(m->rows, loss, m->view.params, piece, some, n, &score, &why);
        if (err)
            return call->does->fail(call, err, "examples from %" PRIu64 " on: %s", at, why.text);
    }
    return return_score(call, loss, &score, x.n);
}

static int run_evaluate(struct mr_op_call *call)
{
    MR_AUTO(model_fini) struct model m = {0};
    return evaluate(call, &m);
}

/* ---- nn.model, nn.npz, nn.from_npz ----------------------------------------------------------- */

static void *alloc_result(void *ctx, uint64_t bytes)
{
    struct mr_op_call *call = ctx;
    return call->does->return_extent(call, bytes);
}

/* Returns a new model as the result, and sets `*params` to the address for its parameters. */
static int return_model(
    struct mr_op_call *call, const struct mr_nn_model *m, uint64_t version, float **params)
{
    struct mr_value_alloc a = {alloc_result, call};
    struct mr_error why = {0};
    int err = mr_nn_model_value_new(&a, m, version, params, &why);
    return err ? call->does->fail(call, err, "%s", why.text) : MR_OK;
}

/* Makes a model from its description, which is a text in JSON or a dict. */
static int description(
    struct mr_op_call *call, const struct mr_arg *a, struct mr_buf *json, struct mr_nn_model **m)
{
    struct mr_error why = {0};
    int err = MR_OK;
    struct mr_str text = a->bytes;
    if (a->type == MR_ARG_DICT) {
        MR_AUTO(mr_buf_fini) struct mr_buf pack;
        mr_buf_init(&pack, MR_NN_MODEL_BYTES_MAX);
        err = mr_arg_pack(a, &pack, &why);
        if (!err) err = mr_json_from_pack(mr_buf_str(&pack), json, &why);
        text = mr_buf_str(json);
    }
    if (!err) err = mr_nn_model_new(text, m, &why);
    return err ? call->does->fail(call, err, "argument \"model\": %s", why.text) : MR_OK;
}

static int run_model(struct mr_op_call *call)
{
    int64_t seed = 0;
    int err = mr_arg_int(call, &call->args[1], "seed", 0, INT64_MAX, &seed);
    if (err) return err;
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    MR_AUTO(mr_buf_fini) struct mr_buf json;
    mr_buf_init(&json, MR_NN_MODEL_BYTES_MAX);
    err = description(call, &call->args[0], &json, &m);
    if (err) return err;
    float *params = NULL;
    err = return_model(call, m, 0, &params);
    if (!err) mr_nn_model_init(m, (uint64_t)seed, params);
    return err;
}

static int npz(struct mr_op_call *call, struct model *m)
{
    int err = model_arg(call, &call->args[0], m);
    if (err) return err;
    MR_AUTO(mr_buf_fini) struct mr_buf b;
    mr_buf_init(&b, mr_nn_npz_bytes_max(m->m));
    struct mr_error why = {0};
    err = mr_nn_npz_write(m->m, m->view.version, m->view.params, &b, &why);
    if (err) return call->does->fail(call, err, "%s", why.text);
    void *out = call->does->return_bytes(call, b.n);
    if (!out) return MR_ELIMIT;
    memcpy(out, b.p, b.n);
    return MR_OK;
}

static int run_npz(struct mr_op_call *call)
{
    MR_AUTO(model_fini) struct model m = {0};
    return npz(call, &m);
}

static int run_from_npz(struct mr_op_call *call)
{
    struct mr_str bytes = call->args[0].bytes;
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    struct mr_error why = {0};
    uint64_t version = 0;
    int err = mr_nn_npz_model(bytes, &m, &version, &why);
    if (err) return call->does->fail(call, err, "%s", why.text);
    float *params = NULL;
    err = return_model(call, m, version, &params);
    if (err) return err;
    err = mr_nn_npz_read(bytes, m, params, &why);
    return err ? call->does->fail(call, err, "%s", why.text) : MR_OK;
}

#define D MR_OP_DETERMINISTIC
#define MODEL_PARAM                                                                                \
    {                                                                                              \
        "model", MR_TAKES_VALUE | MR_TAKES_DICT, NULL,                                             \
            "A model, or a dict with a model as \"model\"."                                        \
    }
#define X_PARAM                                                                                    \
    {                                                                                              \
        "x", MR_TAKES_ARRAY, NULL, "Examples along axis 0."                                        \
    }

static const struct mr_op_param predicted[] = {MODEL_PARAM, X_PARAM};
static const struct mr_op_param evaluated[] = {
    MODEL_PARAM,
    X_PARAM,
    {"y", MR_TAKES_ARRAY, NULL,
        "Class numbers of the examples, or one row of floats for each example."},
    {"loss", MR_TAKES_TEXT, "\"cross_entropy\"", "Loss: cross_entropy, mse or hinge."},
};
static const struct mr_op_param made[] = {
    {"model", MR_TAKES_TEXT | MR_TAKES_DICT, NULL,
        "Description of the model as JSON: input and layers."},
    {"seed", MR_TAKES_INT, "0", "The same seed gives the same parameters."},
};
static const struct mr_op_param archived[] = {MODEL_PARAM};
static const struct mr_op_param unarchived[] = {
    {"npz", MR_TAKES_BYTES, NULL, "Bytes of the archive."},
};

const struct mr_op_desc *mr_nn_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("nn.model", D, made, 500000, run_model, "model",
            "Makes a model from a description, with random initial parameters."),
        MR_OP_ROW("nn.predict", D, predicted, 1000000, run_predict, "f32 tensor [examples, …]",
            "Computes the output of a model for each example."),
        MR_OP_ROW("nn.evaluate", D, evaluated, 1000000, run_evaluate,
            "dict of loss, accuracy, examples",
            "Computes the mean loss (under its own name and as \"loss\"), the accuracy and the "
            "number of examples."),
        MR_OP_ROW("nn.npz", D, archived, 1000000, run_npz, "bytes",
            "Writes a model as an .npz archive that numpy.load reads."),
        MR_OP_ROW("nn.from_npz", D, unarchived, 1000000, run_from_npz, "model",
            "Reads a model from an .npz archive that nn.npz or numpy.savez wrote."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
