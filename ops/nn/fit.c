/* nn.fit: trains one network for some epochs in one task, for searches and other work with many
 * small networks. Large networks are trained in sessions (docs/training.md). The result is a dict
 * with the model as a value and everything that is needed to continue: the optimizer's state and
 * the number of epochs. This dict can be the argument "model" of the next nn.fit: r epochs and then
 * s epochs give the same bits as r + s epochs. */
#include "ops/nn/nn.h"

#include "nn/model/model_value.h"
#include "nn/net/net.h"
#include "nn/optim/clip.h"
#include "nn/optim/optim.h"
#include "ops/arg.h"
#include "ops/ml/ml.h"
#include "ops/ml/random.h"
#include "store/object/format/json.h"
#include "store/object/value.h"

#define SCORE_BATCH 512
#define EPOCHS_MAX 100000
#define JSON_BYTES_MAX ((size_t)1 << 20)

struct rows { /* examples */
    const float *x;
    const int32_t *index; /* labels as class numbers; NULL: `row` has the labels */
    const float *row;
    uint64_t n;
};

struct fit {
    struct mr_nn_model *model;
    struct mr_nn_optim optim;
    enum mr_nn_loss loss;
    uint32_t batch;
    uint32_t seed;
    uint64_t inputs;  /* how many numbers an example has */
    uint64_t outputs; /* how many numbers a prediction has */
    uint64_t epochs;  /* epochs so far, including those of the model that is continued */
    uint64_t version; /* updates so far, including those of the model that is continued */
    uint64_t more;    /* epochs to train now */
    bool shuffle;
    float *slots; /* state of the optimizer: slots_count × count numbers */
    uint32_t slots_count;
    float *params; /* parameters, inside `value` */
    /* The model to continue. params NULL: the network is new. */
    struct mr_nn_model_view before;
    /* The optimizer state of the model to continue; NULL: none. */
    const struct mr_arg *before_slots;
    struct mr_arg optimizer; /* the argument "optimizer": its settings */
    struct mr_arg value;     /* the resulting model */
    struct mr_arg slots_value;
    struct rows train;
    struct rows validation;    /* the examples for validation; n is 0: no validation */
    struct mr_nn_score learnt; /* training score of the last epoch */
    struct mr_nn_score validated;
};

/* ---- arguments ---- */

static int failed(struct mr_op_call *call, const char *name, int err, const struct mr_error *why)
{
    return call->does->fail(call, err, "argument \"%s\": %s", name, why->text);
}

/* Writes an argument as JSON text into the buffer of the caller. */
static int json_of(
    struct mr_op_call *call, const struct mr_arg *a, const char *name, struct mr_buf *out)
{
    struct mr_error why = {0};
    struct mr_buf pack;
    mr_buf_init(&pack, JSON_BYTES_MAX);
    int err = mr_arg_pack(a, &pack, &why);
    if (!err) err = mr_json_from_pack(mr_buf_str(&pack), out, &why);
    mr_buf_fini(&pack);
    return err ? failed(call, name, err, &why) : MR_OK;
}

static int examples_x(struct mr_op_call *call, const struct mr_arg *a, const char *name,
    uint64_t inputs, struct rows *out)
{
    struct mr_tensor t;
    int err = mr_array_tensor(call, a, name, &t);
    if (err) return err;
    uint64_t all = mr_tensor_elements(&t);
    if (!t.ndim || !t.shape[0] || all / t.shape[0] != inputs) {
        char text[MR_TENSOR_TEXT_MAX];
        mr_tensor_text(t.dtype, t.ndim, t.shape, text);
        return call->does->fail(call, MR_EINVAL,
            "argument \"%s\": expected rows of %llu numbers, as the model's input, got %s", name,
            (unsigned long long)inputs, text);
    }
    out->n = t.shape[0];
    out->x = t.data;
    if (t.dtype == MR_DTYPE_F32 && mr_tensor_is_contiguous(&t)) return MR_OK;
    float *copy = call->does->scratch(call, all * sizeof *copy);
    if (!copy) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, MR_DTYPE_F32, t.ndim, t.shape, copy);
    out->x = copy;
    return mr_array_cast(call, &t, &to);
}

/* Reads labels: class numbers, or a row of floats for each example. */
static int examples_y(struct mr_op_call *call, const struct mr_arg *a, const char *name,
    uint64_t outputs, struct rows *out)
{
    struct mr_tensor t;
    int err = mr_array_tensor(call, a, name, &t);
    if (err) return err;
    uint64_t all = mr_tensor_elements(&t);
    bool index = !mr_dtype_is_float(t.dtype);
    if (!t.ndim || t.shape[0] != out->n || (all != out->n && index) ||
        (!index && all != out->n * outputs))
        return call->does->fail(call, MR_EINVAL,
            "argument \"%s\": expected %llu class numbers, or as many rows of %llu floats", name,
            (unsigned long long)out->n, (unsigned long long)outputs);
    void *copy = call->does->scratch(call, MR_MAX(all, 1u) * sizeof(float));
    if (!copy) return MR_ELIMIT;
    struct mr_tensor to;
    mr_tensor_init(&to, index ? MR_DTYPE_I32 : MR_DTYPE_F32, t.ndim, t.shape, copy);
    if (index)
        out->index = copy;
    else
        out->row = copy;
    return mr_array_cast(call, &t, &to);
}

static int examples(struct mr_op_call *call, const struct fit *f, const struct mr_arg *x,
    const struct mr_arg *y, const char *x_name, const char *y_name, struct rows *out)
{
    *out = (struct rows){0};
    int err = examples_x(call, x, x_name, f->inputs, out);
    return err ? err : examples_y(call, y, y_name, f->outputs, out);
}

/* ---- the argument "model" ---- */

static int from_description(struct mr_op_call *call, const struct mr_arg *a, struct fit *f)
{
    struct mr_error why = {0};
    struct mr_buf json;
    mr_buf_init(&json, MR_NN_MODEL_BYTES_MAX);
    int err = json_of(call, a, "model", &json);
    if (!err) {
        err = mr_nn_model_new(mr_buf_str(&json), &f->model, &why);
        if (err) err = failed(call, "model", err, &why);
    }
    mr_buf_fini(&json);
    return err;
}

static int from_value(struct mr_op_call *call, const struct mr_arg *a, struct fit *f)
{
    struct mr_value v;
    struct mr_error why = {0};
    int err = mr_value_check(a->extent, &v, &why);
    if (!err) err = mr_nn_model_value_open(&v, &f->before, &f->model, &why);
    if (err) return failed(call, "model", err, &why);
    f->version = f->before.version;
    return MR_OK;
}

static int bad_fit(struct mr_op_call *call, const char *what)
{
    return call->does->fail(call, MR_EINVAL,
        "argument \"model\": expected what nn.fit gave, but its \"%s\" is missing or of another "
        "kind",
        what);
}

/* Continues from the result of an nn.fit: model, optimizer state and progress. */
static int from_fit(struct mr_op_call *call, const struct mr_arg *dict, struct fit *f)
{
    const struct mr_arg *model = mr_ml_member(dict, "model");
    const struct mr_arg *epochs = mr_ml_member(dict, "epochs");
    f->before_slots = mr_ml_member(dict, "optimizer_state");
    if (model->type != MR_ARG_VALUE) return bad_fit(call, "model");
    if (!epochs || epochs->type != MR_ARG_INT || epochs->i < 0) return bad_fit(call, "epochs");
    if (!f->before_slots) return bad_fit(call, "optimizer_state");
    f->epochs = (uint64_t)epochs->i;
    return from_value(call, model, f);
}

static int take_model(struct mr_op_call *call, struct fit *f)
{
    const struct mr_arg *a = &call->args[0];
    int err = MR_OK;
    if (a->type == MR_ARG_VALUE)
        err = from_value(call, a, f);
    else if (mr_ml_member(a, "model"))
        err = from_fit(call, a, f);
    else
        err = from_description(call, a, f);
    if (err) return err;
    f->inputs = mr_nn_shape_count(&f->model->input);
    f->outputs = mr_nn_shape_count(&f->model->output);
    return MR_OK;
}

/* ---- how to train ---- */

/* Returns the value of a parameter: the argument; if the argument is null, the value from the
 * continued training, or else `fallback`. */
static struct mr_arg setting(
    struct mr_op_call *call, uint32_t param, const char *name, struct mr_arg fallback)
{
    const struct mr_arg *a = &call->args[param];
    const struct mr_arg *before = mr_ml_member(&call->args[0], name);
    if (a->type != MR_ARG_NIL) return *a;
    bool fitted = mr_ml_member(&call->args[0], "model") != NULL;
    return fitted && before ? *before : fallback;
}

static int take_optimizer(struct mr_op_call *call, struct fit *f)
{
    struct mr_arg *adam = call->does->scratch(call, sizeof *adam);
    if (!adam) return MR_ELIMIT;
    *adam = mr_ml_named("type", mr_ml_text("adam"));
    struct mr_error why = {0};
    struct mr_buf json;
    mr_buf_init(&json, JSON_BYTES_MAX);
    f->optimizer = setting(call, 5, "optimizer", mr_ml_dict(adam, 1));
    int err = json_of(call, &f->optimizer, "optimizer", &json);
    if (!err) {
        err = mr_nn_optim_parse(mr_buf_str(&json), &f->optim, &why);
        if (err) err = failed(call, "optimizer", err, &why);
    }
    mr_buf_fini(&json);
    f->slots_count = mr_nn_optim_slots(&f->optim);
    return err;
}

static int take_settings(struct mr_op_call *call, struct fit *f)
{
    struct mr_error why = {0};
    int64_t epochs = 0;
    int64_t batch = 0;
    int64_t seed = 0;
    struct mr_arg batch_arg = setting(call, 4, "batch", mr_ml_int(32));
    struct mr_arg seed_arg = setting(call, 7, "seed", mr_ml_int(0));
    struct mr_arg loss_arg = setting(call, 6, "objective", mr_ml_text("cross_entropy"));
    int err = mr_arg_int(call, &call->args[3], "epochs", 0, EPOCHS_MAX, &epochs);
    if (!err) err = mr_arg_int(call, &batch_arg, "batch", 1, MR_NN_BATCH_MAX, &batch);
    if (!err) err = mr_arg_int(call, &seed_arg, "seed", 0, UINT32_MAX, &seed);
    if (err) return err;
    if (loss_arg.type != MR_ARG_TEXT || loss_arg.bytes.n >= 40) return bad_fit(call, "objective");
    char name[40] = "";
    memcpy(name, loss_arg.bytes.p, loss_arg.bytes.n);
    err = mr_nn_loss_parse(name, &f->loss, &why);
    if (err) return failed(call, "loss", err, &why);
    f->more = (uint64_t)epochs;
    f->batch = (uint32_t)batch;
    f->seed = (uint32_t)seed;
    f->shuffle = call->args[9].boolean;
    return take_optimizer(call, f);
}

static int take_examples(struct mr_op_call *call, struct fit *f)
{
    const struct mr_arg *v = &call->args[8];
    int err = examples(call, f, &call->args[1], &call->args[2], "x", "y", &f->train);
    if (err || v->type == MR_ARG_NIL) return err;
    if (v->count != 2)
        return call->does->fail(call, MR_EINVAL, "argument \"validation\": expected [x, y]");
    return examples(
        call, f, &v->items[0], &v->items[1], "validation", "validation", &f->validation);
}

/* ---- the memory of the result, into which the training writes ---- */

static void *scratch_memory(void *ctx, uint64_t bytes)
{
    struct mr_op_call *call = ctx;
    return call->does->scratch(call, bytes);
}

struct extent { /* memory for the model value that mr_nn_model_value_new makes */
    struct mr_op_call *call;
    void *p;
    uint64_t bytes;
};

static void *extent_memory(void *ctx, uint64_t bytes)
{
    struct extent *x = ctx;
    x->p = scratch_memory(x->call, bytes);
    x->bytes = bytes;
    return x->p;
}

static int make_value(struct mr_op_call *call, struct fit *f)
{
    struct mr_error why = {0};
    struct extent x = {.call = call};
    struct mr_value_alloc a = {.alloc = extent_memory, .ctx = &x};
    uint64_t steps = (f->train.n + f->batch - 1) / f->batch;
    int err = mr_nn_model_value_new(&a, f->model, f->version + f->more * steps, &f->params, &why);
    if (err) return failed(call, "model", err, &why);
    f->value = (struct mr_arg){
        .type = MR_ARG_VALUE, .input = MR_ARG_NO_INPUT, .extent = mr_str_of(x.p, (size_t)x.bytes)};
    if (f->before.params)
        memcpy(f->params, f->before.params, f->model->count * sizeof(float));
    else
        mr_nn_model_init(f->model, f->seed, f->params);
    return MR_OK;
}

static int make_slots(struct mr_op_call *call, struct fit *f)
{
    uint64_t shape[2] = {f->slots_count, f->model->count};
    void *data = NULL;
    int err = mr_ml_tensor(call, MR_DTYPE_F32, 2, shape, &data, &f->slots_value);
    if (err) return err;
    f->slots = data;
    const struct mr_arg *before = f->before_slots;
    if (!before) return MR_OK; /* `slots` is zeroed, like all scratch memory */
    if (before->type != MR_ARG_TENSOR || before->tensor->dtype != MR_DTYPE_F32 ||
        before->tensor->ndim != 2 || !mr_tensor_is_contiguous(before->tensor))
        return bad_fit(call, "optimizer_state");
    if (before->tensor->shape[0] != shape[0] || before->tensor->shape[1] != shape[1])
        return call->does->fail(call, MR_EINVAL,
            "argument \"optimizer\": not the one that the model was trained with before");
    if (shape[0]) memcpy(data, before->tensor->data, shape[0] * shape[1] * sizeof(float));
    return MR_OK;
}

/* ---- training ---- */

struct work {
    struct mr_nn_net *net;  /* for f->batch examples */
    struct mr_nn_net *last; /* the network for the last batch of an epoch, if it is smaller */
    uint32_t *order;
    float *x; /* the examples of a batch, contiguous */
    float *row;
    int32_t *index;
    float *grad;
};

static void work_fini(struct work *w)
{
    mr_nn_net_free(&w->net);
    mr_nn_net_free(&w->last);
}

static int work_init(struct mr_op_call *call, const struct fit *f, struct work *w)
{
    struct mr_error why = {0};
    uint64_t n = f->train.n;
    uint64_t batch = MR_MIN(n, (uint64_t)f->batch);
    if (n > UINT32_MAX) return call->does->fail(call, MR_ELIMIT, "at most 2^32 - 1 examples");
    w->order = call->does->scratch(call, n * sizeof *w->order);
    w->x = call->does->scratch(call, batch * f->inputs * sizeof *w->x);
    w->row = call->does->scratch(call, batch * f->outputs * sizeof *w->row);
    w->index = call->does->scratch(call, batch * sizeof *w->index);
    w->grad = call->does->scratch(call, f->model->count * sizeof *w->grad);
    if (!w->order || !w->x || !w->row || !w->index || !w->grad) return MR_ELIMIT;
    int err = mr_nn_net_new(f->model, (uint32_t)batch, &w->net, &why);
    if (!err && n % batch) err = mr_nn_net_new(f->model, (uint32_t)(n % batch), &w->last, &why);
    return err ? call->does->fail(call, err, "%s", why.text) : MR_OK;
}

/* Copies the examples order[at … at + n) into a contiguous batch. */
static void gather(const struct fit *f, const struct work *w, uint64_t at, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t from = w->order[at + i];
        memcpy(w->x + i * f->inputs, f->train.x + from * f->inputs, f->inputs * sizeof *w->x);
        if (f->train.index)
            w->index[i] = f->train.index[from];
        else
            memcpy(w->row + i * f->outputs, f->train.row + from * f->outputs,
                f->outputs * sizeof *w->row);
    }
}

static int learn_batch(
    struct mr_op_call *call, struct fit *f, struct work *w, uint64_t at, uint64_t n)
{
    struct mr_error why = {0};
    struct mr_nn_net *net = w->last && n == mr_nn_net_batch(w->last) ? w->last : w->net;
    gather(f, w, at, n);
    struct mr_nn_batch b = {.x = w->x, .step = f->version};
    if (f->train.index)
        b.y.index = w->index;
    else
        b.y.rows = w->row;
    int err = mr_nn_net_learn(net, f->loss, f->params, &b, w->grad, &f->learnt, &why);
    if (err) return call->does->fail(call, err, "%s", why.text);
    mr_nn_optim_clip(&f->optim, w->grad, f->model->trainable_count);
    float *slots[MR_NN_SLOTS_MAX] = {f->slots, f->slots + f->model->count};
    struct mr_nn_range r = {.from = f->params,
        .to = f->params,
        .slots = slots,
        .count = f->model->count,
        .trainable_count = f->model->trainable_count};
    mr_nn_optim_apply(&f->optim, ++f->version, &r, w->grad, 1);
    return MR_OK;
}

/* Shuffles the examples of an epoch. Their order depends on the seed and the number of the epoch
 * alone. */
static void shuffle(const struct fit *f, struct work *w)
{
    struct mr_mt mt;
    for (uint32_t i = 0; i < f->train.n; i++)
        w->order[i] = i;
    if (!f->shuffle) return;
    mr_mt_init(&mt, f->seed + 0x9e3779b9u * (uint32_t)(f->epochs + 1));
    mr_mt_shuffle_u32(&mt, w->order, f->train.n);
}

static int train(struct mr_op_call *call, struct fit *f, struct work *w)
{
    for (uint64_t i = 0; i < f->more; i++, f->epochs++) {
        f->learnt = (struct mr_nn_score){0};
        shuffle(f, w);
        for (uint64_t at = 0; at < f->train.n; at += f->batch) {
            int err = learn_batch(call, f, w, at, MR_MIN((uint64_t)f->batch, f->train.n - at));
            if (err) return err;
            if (call->does->is_cancelled(call))
                return call->does->fail(call, MR_ECANCELED, "cancelled");
        }
    }
    return MR_OK;
}

static int score_part(
    struct mr_op_call *call, struct fit *f, uint64_t at, uint32_t batch, uint64_t end)
{
    struct mr_error why = {0};
    struct mr_nn_net *net = NULL;
    int err = mr_nn_net_new_for_use(f->model, batch, &net, &why);
    for (; !err && at + batch <= end; at += batch) {
        struct mr_nn_batch b = {.x = f->validation.x + at * f->inputs};
        if (f->validation.index)
            b.y.index = f->validation.index + at;
        else
            b.y.rows = f->validation.row + at * f->outputs;
        err = mr_nn_net_score(net, f->loss, f->params, &b, &f->validated, &why);
        if (!err && call->does->is_cancelled(call)) err = MR_ECANCELED;
    }
    mr_nn_net_free(&net);
    if (err == MR_ECANCELED) return call->does->fail(call, err, "cancelled");
    return err ? failed(call, "validation", err, &why) : MR_OK;
}

static int validate(struct mr_op_call *call, struct fit *f)
{
    uint64_t n = f->validation.n;
    uint64_t whole = n - n % SCORE_BATCH;
    int err = whole ? score_part(call, f, 0, SCORE_BATCH, whole) : MR_OK;
    if (!err && n > whole) err = score_part(call, f, whole, (uint32_t)(n - whole), n);
    return err;
}

/* ---- the result ---- */

static struct mr_arg mean_loss(const struct mr_nn_score *s)
{
    if (!s->examples) return (struct mr_arg){.type = MR_ARG_NIL, .input = MR_ARG_NO_INPUT};
    return mr_ml_float(s->loss_sum / (double)s->examples);
}

static struct mr_arg accuracy(const struct mr_nn_score *s)
{
    if (!s->examples) return (struct mr_arg){.type = MR_ARG_NIL, .input = MR_ARG_NO_INPUT};
    return mr_ml_float((double)s->correct / (double)s->examples);
}

static int answer(struct mr_op_call *call, const struct fit *f)
{
    struct mr_arg items[] = {
        mr_ml_named("model", f->value),
        mr_ml_named("epochs", mr_ml_int((int64_t)f->epochs)),
        mr_ml_named("loss", mean_loss(&f->learnt)),
        mr_ml_named("accuracy", accuracy(&f->learnt)),
        mr_ml_named("validation_loss", mean_loss(&f->validated)),
        mr_ml_named("validation_accuracy", accuracy(&f->validated)),
        mr_ml_named("optimizer", f->optimizer),
        mr_ml_named("objective", mr_ml_text(mr_nn_loss_name(f->loss))),
        mr_ml_named("batch", mr_ml_int(f->batch)),
        mr_ml_named("seed", mr_ml_int(f->seed)),
        mr_ml_named("optimizer_state", f->slots_value),
    };
    struct mr_arg dict = mr_ml_dict(items, MR_ARRAY_LEN(items));
    return call->does->return_arg(call, &dict);
}

static int fit(struct mr_op_call *call, struct fit *f)
{
    int err = take_model(call, f);
    if (!err) err = take_settings(call, f);
    if (!err) err = take_examples(call, f);
    if (!err) err = make_value(call, f);
    if (!err) err = make_slots(call, f);
    if (err) return err;
    struct work w = {0};
    err = work_init(call, f, &w);
    if (!err) err = train(call, f, &w);
    work_fini(&w);
    if (!err && f->validation.n) err = validate(call, f);
    return err ? err : answer(call, f);
}

static int run_fit(struct mr_op_call *call)
{
    struct fit f = {0};
    int err = fit(call, &f);
    mr_nn_model_free(&f.model);
    return err;
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param fitted[] = {
    {"model", MR_TAKES_DICT | MR_TAKES_VALUE, NULL,
        "A description {input, layers}, a model, or the result of nn.fit, to continue the "
        "training."},
    {"x", MR_TAKES_ARRAY, NULL, "Examples along axis 0."},
    {"y", MR_TAKES_ARRAY, NULL, "Class numbers, or one row of floats for each example."},
    {"epochs", MR_TAKES_INT, "1", "Number of passes over the examples."},
    {"batch", MR_TAKES_INT | MR_TAKES_NIL, "null",
        "Examples in each update; the last batch of an epoch may have fewer. Null: the value of "
        "the continued training, else 32."},
    {"optimizer", MR_TAKES_DICT | MR_TAKES_NIL, "null",
        "{\"type\": \"sgd\", \"adam\" or \"rmsprop\", \"learning_rate\": …}. Null: the optimizer "
        "of the continued training, else adam."},
    {"loss", MR_TAKES_TEXT | MR_TAKES_NIL, "null",
        "cross_entropy, mse or hinge. Null: the loss of the continued training, else "
        "cross_entropy."},
    {"seed", MR_TAKES_INT | MR_TAKES_NIL, "null",
        "Seed of the initial weights and of the order of examples. Null: the seed of the "
        "continued training, else 0."},
    {"validation", MR_TAKES_LIST | MR_TAKES_NIL, "null", "[x, y] to evaluate at the end."},
    {"shuffle", MR_TAKES_BOOL, "true", "Use another order of examples in each epoch."},
};

const struct mr_op_desc *mr_nn_fit_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("nn.fit", D, fitted, 1000000000, run_fit,
            "dict of model, epochs, loss, accuracy, validation_loss, validation_accuracy …",
            "Trains a small network for some epochs, or continues a training."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
