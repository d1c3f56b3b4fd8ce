/* Makes the layers of a model from its JSON. Computes the shapes of each layer, and gives each
 * parameter its place in the model's vector. */
#include "nn/model/model.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "nn/model/internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

static_assert(MR_NN_ELEMENTS_MAX < UINT32_MAX, "an element count fits a dimension");

uint64_t mr_nn_shape_count(const struct mr_nn_shape *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= s->dims[i];
    return n;
}

struct mr_str mr_nn_model_text(const struct mr_nn_model *m)
{
    return mr_str_of(m->text, m->text_bytes);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static int wrong_shape(const struct mr_nn_layer *l, const char *want, struct mr_error *e)
{
    return mr_fail(e, MR_EINVAL, "model: layer \"%s\": %s needs %s, but what comes in has %u",
        l->name, mr_nn_kind_name(l->kind), want, l->in.rank);
}

/* Computes the output size and the padding of a sliding window along one axis, as TensorFlow
 * defines them. False: the window is too large. With padding "same" (`same`) the limit of its size
 * is twice the size of the input, otherwise the size of the input. */
static bool slide(struct mr_nn_layer *l, int axis, bool same)
{
    uint64_t in = l->in.dims[axis], k = l->kernel[axis], s = l->stride[axis];
    if (same) {
        uint64_t out = (in + s - 1) / s;
        uint64_t reach = (out - 1) * s + k;
        uint64_t pad = reach > in ? reach - in : 0;
        l->pad_before[axis] = (uint32_t)(pad / 2);
        l->pad_after[axis] = (uint32_t)(pad - pad / 2);
        l->out.dims[axis] = (uint32_t)out;
        return k <= 2 * in;
    }
    if (k > in) return false;
    l->out.dims[axis] = (uint32_t)((in - k) / s + 1);
    return true;
}

static int shape_window(struct mr_nn_layer *l, const struct mr_nn_entry *d, struct mr_error *e)
{
    if (l->in.rank != 3) return wrong_shape(l, "3 axes (height, width, channels)", e);
    l->out = l->in;
    if (!slide(l, 0, d->same) || !slide(l, 1, d->same))
        return mr_fail(e, MR_EINVAL,
            "model: layer \"%s\": a window of %u×%u does not fit an image of %u×%u", l->name,
            l->kernel[0], l->kernel[1], l->in.dims[0], l->in.dims[1]);
    if (l->kind == MR_NN_CONV2D) l->out.dims[2] = d->units;
    return MR_OK;
}

static int shape_reshape(struct mr_nn_layer *l, const struct mr_nn_entry *d, struct mr_error *e)
{
    l->out = d->shape;
    uint64_t has = mr_nn_shape_count(&l->in), wants = mr_nn_shape_count(&l->out);
    if (has != wants)
        return mr_fail(e, MR_EINVAL,
            "model: layer \"%s\": field \"shape\" holds %llu numbers, but %llu come in", l->name,
            (unsigned long long)wants, (unsigned long long)has);
    return MR_OK;
}

static int shape_layer(struct mr_nn_layer *l, const struct mr_nn_entry *d, struct mr_error *e)
{
    l->out = l->in;
    switch (l->kind) {
    case MR_NN_DENSE: l->out.dims[l->in.rank - 1] = d->units; return MR_OK;
    case MR_NN_CONV2D:
    case MR_NN_MAXPOOL2D: return shape_window(l, d, e);
    case MR_NN_FLATTEN:
        l->out = (struct mr_nn_shape){1, {(uint32_t)mr_nn_shape_count(&l->in)}};
        return MR_OK;
    case MR_NN_RESHAPE: return shape_reshape(l, d, e);
    case MR_NN_RELU:
    case MR_NN_TANH:
    case MR_NN_SIGMOID:
    case MR_NN_SOFTMAX:
    case MR_NN_DROPOUT:
    case MR_NN_BATCHNORM:
    case MR_NN_KINDS: return MR_OK;
    }
    return MR_EINTERNAL;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void param_add(struct mr_nn_model *m, const char *name, struct mr_nn_shape s, bool trainable)
{
    struct mr_nn_param p = {.layer = m->layers_count,
        .name = name,
        .shape = s,
        .count = mr_nn_shape_count(&s),
        .trainable = trainable};
    struct mr_nn_layer *l = &m->layers[m->layers_count];
    *(trainable ? &l->count : &l->state_count) += p.count;
    m->params[m->params_count++] = p;
    m->count += p.count;
}

static void params_of_layer(struct mr_nn_model *m, const struct mr_nn_layer *l)
{
    uint32_t in = l->in.dims[l->in.rank - 1], out = l->out.dims[l->out.rank - 1];
    struct mr_nn_shape row = {1, {out}};
    if (l->kind == MR_NN_DENSE) {
        param_add(m, "kernel", (struct mr_nn_shape){2, {in, out}}, true);
    } else if (l->kind == MR_NN_CONV2D) {
        struct mr_nn_shape s = {4, {l->kernel[0], l->kernel[1], in, out}};
        param_add(m, "kernel", s, true);
    } else if (l->kind == MR_NN_BATCHNORM) {
        param_add(m, "gamma", row, true);
        param_add(m, "beta", row, true);
        param_add(m, "moving_mean", row, false);
        param_add(m, "moving_variance", row, false);
    }
    if ((l->kind == MR_NN_DENSE || l->kind == MR_NN_CONV2D) && l->bias)
        param_add(m, "bias", row, true);
}

/* Places the parameters in the vector: trainable parameters first, then the state, each in the
 * order of layers. */
static void params_place(struct mr_nn_model *m)
{
    struct mr_nn_param *sorted = mr_alloc_array(m->params_count, sizeof *sorted);
    uint64_t offset = 0;
    uint32_t n = 0;
    for (int state = 0; state < 2; state++) {
        for (uint32_t i = 0; i < m->params_count; i++) {
            struct mr_nn_param p = m->params[i];
            if (p.trainable == (state == 1)) continue;
            p.offset = offset;
            offset += p.count;
            sorted[n++] = p;
        }
        if (state == 0) m->trainable_count = offset;
    }
    uint64_t at = 0, at_state = m->trainable_count;
    for (uint32_t i = 0; i < m->layers_count; i++) {
        m->layers[i].offset = at;
        m->layers[i].state = at_state;
        at += m->layers[i].count;
        at_state += m->layers[i].state_count;
    }
    mr_release(m->params);
    m->params = sorted;
}

/* ---- the list -------------------------------------------------------------------------------- */

static uint64_t layer_size(const struct mr_nn_layer *l)
{
    uint64_t in = l->in.dims[l->in.rank - 1], out = l->out.dims[l->out.rank - 1];
    if (l->kind == MR_NN_DENSE) return (in + 1) * out;
    if (l->kind != MR_NN_CONV2D) return 4 * out;
    uint64_t window = (uint64_t)l->kernel[0] * l->kernel[1];
    return in * out > MR_NN_PARAMETERS_MAX ? UINT64_MAX / 2 : window * in * out + out;
}

static int layer_add(struct mr_nn_model *m, const struct mr_nn_entry *d, struct mr_error *e)
{
    struct mr_nn_layer *l = &m->layers[m->layers_count];
    *l = d->layer;
    l->in = m->output;
    for (uint32_t i = 0; i < m->layers_count; i++)
        if (strcmp(m->layers[i].name, l->name) == 0)
            return mr_fail(e, MR_EINVAL, "model: two layers are named \"%s\"", l->name);
    int err = shape_layer(l, d, e);
    if (err) return err;
    uint64_t window = (uint64_t)l->kernel[0] * l->kernel[1];
    if (mr_nn_shape_count(&l->out) > MR_NN_ELEMENTS_MAX || window > MR_NN_PARAMETERS_MAX ||
        m->count + layer_size(l) > MR_NN_PARAMETERS_MAX)
        return mr_fail(e, MR_ELIMIT,
            "model: layer \"%s\" is too large: at most %llu numbers an example and %llu parameters "
            "a model",
            l->name, (unsigned long long)MR_NN_ELEMENTS_MAX,
            (unsigned long long)MR_NN_PARAMETERS_MAX);
    params_of_layer(m, l);
    m->output = l->out;
    m->layers_count++;
    return MR_OK;
}

static int layers_read(struct mr_nn_model *m, yyjson_val *list, struct mr_error *e)
{
    size_t at = 0, n = 0;
    yyjson_val *v = NULL;
    yyjson_arr_foreach(list, at, n, v)
    {
        struct mr_nn_entry d;
        int err = mr_nn_entry_read(v, at, &d, e);
        if (err) return err;
        err = layer_add(m, &d, e);
        if (err) return err;
        if (!d.has_activation) continue;
        static const char *const words[MR_NN_KINDS] = {[MR_NN_RELU] = "relu",
            [MR_NN_TANH] = "tanh",
            [MR_NN_SIGMOID] = "sigmoid",
            [MR_NN_SOFTMAX] = "softmax"};
        struct mr_nn_entry a = {.layer = {.kind = d.activation}};
        (void)snprintf(
            a.layer.name, sizeof a.layer.name, "%.40s.%s", d.layer.name, words[d.activation]);
        err = layer_add(m, &a, e);
        if (err) return err;
    }
    return MR_OK;
}

static int document_check(yyjson_val *root, struct mr_error *e)
{
    if (!yyjson_is_obj(root))
        return mr_fail(e, MR_EINVAL, "model: must be an object with \"input\" and \"layers\"");
    size_t at = 0, n = 0;
    yyjson_val *key = NULL, *value = NULL;
    yyjson_obj_foreach(root, at, n, key, value)
    {
        if (!yyjson_equals_str(key, "input") && !yyjson_equals_str(key, "layers") &&
            !yyjson_equals_str(key, "name"))
            return mr_fail(e, MR_EINVAL,
                "model: unknown field \"%.60s\"; it has \"input\", \"layers\" and \"name\"",
                yyjson_get_str(key));
    }
    value = yyjson_obj_get(root, "layers");
    n = yyjson_arr_size(value);
    if (n < 1 || n > MR_NN_LAYERS_MAX / 2)
        return mr_fail(e, MR_EINVAL, "model: field \"layers\" must be a list of 1 to %d layers",
            MR_NN_LAYERS_MAX / 2);
    return MR_OK;
}

static void doc_free(yyjson_doc **d)
{
    yyjson_doc_free(*d);
    *d = NULL;
}

int mr_nn_model_new(struct mr_str json, struct mr_nn_model **out, struct mr_error *e)
{
    if (json.n > MR_NN_MODEL_BYTES_MAX)
        return mr_fail(
            e, MR_ELIMIT, "model: %zu bytes of JSON, at most %zu", json.n, MR_NN_MODEL_BYTES_MAX);
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = mr_alloc(sizeof *m);
    m->text = mr_copy(json.p, json.n);
    m->text_bytes = json.n;
    yyjson_read_err bad = {0};
    MR_AUTO(doc_free) yyjson_doc *doc = yyjson_read_opts(m->text, json.n, 0, NULL, &bad);
    if (!doc)
        return mr_fail(e, MR_EINVAL, "model: malformed JSON at byte %zu: %s", bad.pos, bad.msg);
    yyjson_val *root = yyjson_doc_get_root(doc);
    int err = document_check(root, e);
    if (err) return err;
    err = mr_nn_shape_read(
        yyjson_obj_get(root, "input"), "field \"input\"", MR_NN_RANK_MAX - 1, &m->input, e);
    if (err) return err;

    m->output = m->input;
    m->layers = mr_alloc_array(MR_NN_LAYERS_MAX, sizeof *m->layers);
    m->params = mr_alloc_array((size_t)MR_NN_LAYERS_MAX * 4, sizeof *m->params);
    err = layers_read(m, yyjson_obj_get(root, "layers"), e);
    if (err) return err;
    params_place(m);
    *out = MR_STEAL(m);
    return MR_OK;
}

void mr_nn_model_free(struct mr_nn_model **m)
{
    if (!*m) return;
    mr_release((*m)->layers);
    mr_release((*m)->params);
    mr_release((*m)->text);
    mr_release(*m);
    *m = NULL;
}

/* ---- how parameters start -------------------------------------------------------------------- */

/* Returns a number above 0 and at most 1. */
static double uniform(struct mr_rng *r)
{
    return ((double)(mr_rng_next(r) >> 11) + 0.5) * 0x1p-53;
}

static double normal_cut(struct mr_rng *r)
{
    for (;;) {
        double z = sqrt(-2 * log(uniform(r))) * cos(2 * 3.14159265358979323846 * uniform(r));
        if (fabs(z) <= 2) return z;
    }
}

/* The standard deviation of a standard normal distribution that is truncated at ±2. */
#define CUT_DEVIATION 0.87962566103423978

static void kernel_init(
    const struct mr_nn_layer *l, const struct mr_nn_param *p, struct mr_rng *r, float *w)
{
    double window = p->shape.rank == 4 ? (double)p->shape.dims[0] * p->shape.dims[1] : 1;
    double in = window * p->shape.dims[p->shape.rank - 2];
    double out = window * p->shape.dims[p->shape.rank - 1];
    bool he = l->init == MR_NN_HE_UNIFORM || l->init == MR_NN_HE_NORMAL;
    bool normal = l->init == MR_NN_GLOROT_NORMAL || l->init == MR_NN_HE_NORMAL;
    double variance = he ? 2 / in : 2 / (in + out);
    double limit = sqrt(3 * variance), deviation = sqrt(variance) / CUT_DEVIATION;
    for (uint64_t i = 0; i < p->count; i++)
        w[i] = (float)(normal ? deviation * normal_cut(r) : limit * (2 * uniform(r) - 1));
}

void mr_nn_model_init(const struct mr_nn_model *m, uint64_t seed, float *params)
{
    for (uint32_t i = 0; i < m->params_count; i++) {
        const struct mr_nn_param *p = &m->params[i];
        float *w = params + p->offset;
        bool one = strcmp(p->name, "gamma") == 0 || strcmp(p->name, "moving_variance") == 0;
        for (uint64_t k = 0; k < p->count; k++)
            w[k] = one ? 1.0f : 0.0f;
        if (strcmp(p->name, "kernel") != 0) continue;
        /* Each parameter has its own generator, so a layer that is appended does not change the
         * other parameters. */
        struct mr_rng r;
        mr_rng_init(&r, seed * 0x9e3779b97f4a7c15u + i);
        kernel_init(&m->layers[p->layer], p, &r, w);
    }
}
