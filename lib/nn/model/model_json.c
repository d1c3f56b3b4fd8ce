/* Reads the fields of one layer. This file knows the type of each field, and which kinds of layers
 * have the field. */
#include "nn/model/internal.h"

#include <math.h>
#include <stdio.h>

static const char *const kinds[MR_NN_KINDS] = {
    [MR_NN_DENSE] = "Dense",
    [MR_NN_CONV2D] = "Conv2D",
    [MR_NN_MAXPOOL2D] = "MaxPool2D",
    [MR_NN_FLATTEN] = "Flatten",
    [MR_NN_RESHAPE] = "Reshape",
    [MR_NN_RELU] = "Relu",
    [MR_NN_TANH] = "Tanh",
    [MR_NN_SIGMOID] = "Sigmoid",
    [MR_NN_SOFTMAX] = "Softmax",
    [MR_NN_DROPOUT] = "Dropout",
    [MR_NN_BATCHNORM] = "BatchNorm",
};
static const char *const activations[MR_NN_KINDS] = {
    [MR_NN_RELU] = "relu",
    [MR_NN_TANH] = "tanh",
    [MR_NN_SIGMOID] = "sigmoid",
    [MR_NN_SOFTMAX] = "softmax",
};
static const char *const inits[MR_NN_INITS] = {
    [MR_NN_GLOROT_UNIFORM] = "glorot_uniform",
    [MR_NN_GLOROT_NORMAL] = "glorot_normal",
    [MR_NN_HE_UNIFORM] = "he_uniform",
    [MR_NN_HE_NORMAL] = "he_normal",
};

const char *mr_nn_kind_name(enum mr_nn_kind k)
{
    return k < MR_NN_KINDS ? kinds[k] : "?";
}

struct reader {
    struct mr_nn_entry *out;
    const char *where; /* the layer in error texts, for example "layer 2 (\"conv\")" */
    struct mr_error *e;
};

static int refuse(const struct reader *r, const char *field, const char *want)
{
    return mr_fail(r->e, MR_EINVAL, "model: %s: field \"%s\" must be %s", r->where, field, want);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool whole(yyjson_val *v, uint32_t *out)
{
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) == 0 || yyjson_get_uint(v) > MR_NN_ELEMENTS_MAX)
        return false;
    *out = (uint32_t)yyjson_get_uint(v);
    return true;
}

static bool pair(yyjson_val *v, uint32_t out[2])
{
    if (whole(v, &out[0])) {
        out[1] = out[0];
        return true;
    }
    return yyjson_is_arr(v) && yyjson_arr_size(v) == 2 && whole(yyjson_arr_get(v, 0), &out[0]) &&
           whole(yyjson_arr_get(v, 1), &out[1]);
}

static bool word(yyjson_val *v, const char *const *table, unsigned n, unsigned *out)
{
    for (unsigned i = 0; i < n; i++) {
        if (!table[i] || !yyjson_equals_str(v, table[i])) continue;
        *out = i;
        return true;
    }
    return false;
}

static bool between(yyjson_val *v, double low, double high, float *out)
{
    if (!yyjson_is_num(v)) return false;
    double d = yyjson_get_num(v);
    if (!(d >= low && d < high)) return false;
    *out = (float)d;
    return true;
}

int mr_nn_shape_read(yyjson_val *v, const char *where, uint32_t rank_max, struct mr_nn_shape *out,
    struct mr_error *e)
{
    size_t n = yyjson_is_arr(v) ? yyjson_arr_size(v) : 0;
    struct mr_nn_shape s = {(uint32_t)n, {0}};
    bool good = n >= 1 && n <= rank_max;
    uint64_t count = 1;
    for (size_t i = 0; good && i < n; i++) {
        good = whole(yyjson_arr_get(v, i), &s.dims[i]);
        if (good) count *= s.dims[i];
        good = good && count <= MR_NN_ELEMENTS_MAX;
    }
    if (!good)
        return mr_fail(e, MR_EINVAL,
            "model: %s must be a list of 1 to %u sizes, each at least 1, together at most %llu "
            "numbers",
            where, rank_max, (unsigned long long)MR_NN_ELEMENTS_MAX);
    *out = s;
    return MR_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int read_units(struct reader *r, const char *field, yyjson_val *v)
{
    return whole(v, &r->out->units) ? MR_OK : refuse(r, field, "a whole number, at least 1");
}

static int read_kernel(struct reader *r, const char *field, yyjson_val *v)
{
    if (pair(v, r->out->layer.kernel)) return MR_OK;
    return refuse(r, field, "a whole number, at least 1, or [height, width]");
}

static int read_stride(struct reader *r, const char *field, yyjson_val *v)
{
    r->out->has_stride = true;
    if (pair(v, r->out->layer.stride)) return MR_OK;
    return refuse(r, field, "a whole number, at least 1, or [height, width]");
}

static int read_padding(struct reader *r, const char *field, yyjson_val *v)
{
    r->out->same = yyjson_equals_str(v, "same");
    if (r->out->same || yyjson_equals_str(v, "valid")) return MR_OK;
    return refuse(r, field, "\"same\" or \"valid\"");
}

static int read_bias(struct reader *r, const char *field, yyjson_val *v)
{
    if (!yyjson_is_bool(v)) return refuse(r, field, "true or false");
    r->out->layer.bias = yyjson_get_bool(v);
    return MR_OK;
}

static int read_init(struct reader *r, const char *field, yyjson_val *v)
{
    unsigned i = 0;
    if (!word(v, inits, MR_NN_INITS, &i))
        return refuse(r, field, "glorot_uniform, glorot_normal, he_uniform or he_normal");
    r->out->layer.init = (enum mr_nn_init)i;
    return MR_OK;
}

static int read_activation(struct reader *r, const char *field, yyjson_val *v)
{
    unsigned i = 0;
    if (yyjson_equals_str(v, "linear")) return MR_OK;
    if (!word(v, activations, MR_NN_KINDS, &i))
        return refuse(r, field, "relu, tanh, sigmoid, softmax or linear");
    r->out->has_activation = true;
    r->out->activation = (enum mr_nn_kind)i;
    return MR_OK;
}

static int read_shape(struct reader *r, const char *field, yyjson_val *v)
{
    char where[160];
    (void)snprintf(where, sizeof where, "%s: field \"%s\"", r->where, field);
    return mr_nn_shape_read(v, where, MR_NN_RANK_MAX - 1, &r->out->shape, r->e);
}

static int read_rate(struct reader *r, const char *field, yyjson_val *v)
{
    if (between(v, 0, 1, &r->out->layer.rate)) return MR_OK;
    return refuse(r, field, "a number from 0 to less than 1");
}

static int read_seed(struct reader *r, const char *field, yyjson_val *v)
{
    if (!yyjson_is_uint(v)) return refuse(r, field, "a whole number, at least 0");
    r->out->layer.seed = yyjson_get_uint(v);
    return MR_OK;
}

static int read_momentum(struct reader *r, const char *field, yyjson_val *v)
{
    if (between(v, 0, 1, &r->out->layer.momentum)) return MR_OK;
    return refuse(r, field, "a number from 0 to less than 1");
}

static int read_epsilon(struct reader *r, const char *field, yyjson_val *v)
{
    if (between(v, 1e-12, 1, &r->out->layer.epsilon)) return MR_OK;
    return refuse(r, field, "a number from 1e-12 to less than 1");
}

#define K(x) (1u << MR_NN_##x)
static const struct {
    const char *name;
    unsigned kinds, needed;
    int (*read)(struct reader *r, const char *field, yyjson_val *v);
} fields[] = {
    {"units", K(DENSE), K(DENSE), read_units},
    {"filters", K(CONV2D), K(CONV2D), read_units},
    {"kernel", K(CONV2D), K(CONV2D), read_kernel},
    {"pool", K(MAXPOOL2D), 0, read_kernel},
    {"stride", K(CONV2D) | K(MAXPOOL2D), 0, read_stride},
    {"padding", K(CONV2D) | K(MAXPOOL2D), 0, read_padding},
    {"bias", K(DENSE) | K(CONV2D), 0, read_bias},
    {"init", K(DENSE) | K(CONV2D), 0, read_init},
    {"activation", K(DENSE) | K(CONV2D) | K(BATCHNORM), 0, read_activation},
    {"shape", K(RESHAPE), K(RESHAPE), read_shape},
    {"rate", K(DROPOUT), K(DROPOUT), read_rate},
    {"seed", K(DROPOUT), 0, read_seed},
    {"momentum", K(BATCHNORM), 0, read_momentum},
    {"epsilon", K(BATCHNORM), 0, read_epsilon},
};

/* ---- one layer ------------------------------------------------------------------------------- */

static int read_kind(yyjson_val *v, size_t number, struct mr_nn_entry *out, struct mr_error *e)
{
    if (!yyjson_is_obj(v))
        return mr_fail(e, MR_EINVAL, "model: layer %zu must be an object with a \"type\"", number);
    yyjson_val *type = yyjson_obj_get(v, "type");
    unsigned kind = 0;
    if (!word(type, kinds, MR_NN_KINDS, &kind))
        return mr_fail(e, MR_EINVAL,
            "model: layer %zu: field \"type\" is %.40s, but must be Dense, Conv2D, MaxPool2D, "
            "Flatten, Reshape, Relu, Tanh, Sigmoid, Softmax, Dropout or BatchNorm",
            number,
            yyjson_is_str(type) ? yyjson_get_str(type)
            : type              ? "no text"
                                : "missing");
    out->layer.kind = (enum mr_nn_kind)kind;
    return MR_OK;
}

/* Returns whether a layer may have this name. The name becomes part of a file name in an .npz, so
 * it consists of 1 to 40 letters, digits, _ or -. */
static bool plain_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '_' && c != '-') return false;
    }
    return n >= 1 && n <= 40;
}

static int read_name(yyjson_val *v, size_t number, struct mr_nn_layer *l, struct mr_error *e)
{
    yyjson_val *name = yyjson_obj_get(v, "name");
    if (!name) {
        (void)snprintf(l->name, sizeof l->name, "%s_%zu", kinds[l->kind], number);
        for (char *c = l->name; *c; c++)
            if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
        return MR_OK;
    }
    if (!yyjson_is_str(name) || !plain_name(yyjson_get_str(name), yyjson_get_len(name)))
        return mr_fail(e, MR_EINVAL,
            "model: layer %zu: field \"name\" must be 1 to 40 letters, digits, _ or -", number);
    memcpy(l->name, yyjson_get_str(name), yyjson_get_len(name) + 1);
    return MR_OK;
}

static int read_field(struct reader *r, const char *name, yyjson_val *v)
{
    const struct mr_nn_layer *l = &r->out->layer;
    for (size_t i = 0; i < MR_ARRAY_LEN(fields); i++) {
        if (strcmp(name, fields[i].name) != 0) continue;
        if (fields[i].kinds >> l->kind & 1u) return fields[i].read(r, name, v);
        break;
    }
    return mr_fail(
        r->e, MR_EINVAL, "model: %s: %s has no field \"%.60s\"", r->where, kinds[l->kind], name);
}

static void defaults(struct mr_nn_layer *l)
{
    l->bias = true;
    l->momentum = 0.99f;
    l->epsilon = 1e-3f;
    for (int i = 0; i < 2; i++) {
        l->kernel[i] = 2;
        l->stride[i] = 1;
    }
}

int mr_nn_entry_read(yyjson_val *v, size_t number, struct mr_nn_entry *out, struct mr_error *e)
{
    *out = (struct mr_nn_entry){0};
    int err = read_kind(v, number, out, e);
    if (err) return err;
    defaults(&out->layer);
    err = read_name(v, number, &out->layer, e);
    if (err) return err;

    char where[128];
    (void)snprintf(where, sizeof where, "layer %zu (\"%s\")", number, out->layer.name);
    struct reader r = {out, where, e};
    size_t at = 0, n = 0;
    yyjson_val *key = NULL, *value = NULL;
    yyjson_obj_foreach(v, at, n, key, value)
    {
        const char *name = yyjson_get_str(key);
        if (strcmp(name, "type") == 0 || strcmp(name, "name") == 0) continue;
        err = read_field(&r, name, value);
        if (err) return err;
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(fields); i++) {
        if (!(fields[i].needed >> out->layer.kind & 1u)) continue;
        if (!yyjson_obj_get(v, fields[i].name))
            return mr_fail(
                e, MR_EINVAL, "model: %s: field \"%s\" is missing", where, fields[i].name);
    }
    if (out->layer.kind == MR_NN_MAXPOOL2D && !out->has_stride)
        memcpy(out->layer.stride, out->layer.kernel, sizeof out->layer.stride);
    return MR_OK;
}
