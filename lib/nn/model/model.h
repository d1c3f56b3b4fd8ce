/* A network as a list of layers, read from JSON, and the place of each parameter in one vector.
 *
 *   {"input": [28, 28, 1],
 *    "layers": [{"type": "Conv2D", "filters": 32, "kernel": 3, "activation": "relu"},
 *               {"type": "Flatten"},
 *               {"type": "Dense", "units": 10, "activation": "softmax", "name": "out"}]}
 *
 * Images have the axes height, width, channels. Kernels are stored as in Keras (Dense: in, out;
 * Conv2D: height, width, in, out), so weights are exchanged with Keras without a transpose.
 *
 * All parameters are ONE vector of float32. Gradients, optimizer state and shards have the same
 * layout. First come the parameters that the optimizer changes (`trainable_count` numbers, layer by
 * layer), then the state: moving mean and variance of BatchNorm. The gradient of the state is the
 * amount to subtract from it, so that replicas can average it like other gradients.
 *
 * A model holds shapes and names. It knows nothing of oneDNN, batches or time, and never
 * changes. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

#define MR_NN_LAYERS_MAX 512
#define MR_NN_NAME_BYTES_MAX 64
/* limit of the axes of an example or a parameter */
#define MR_NN_RANK_MAX 4
/* how many numbers one example may have at any layer */
#define MR_NN_ELEMENTS_MAX ((uint64_t)1 << 28)
/* how many numbers all parameters of a model may have together */
#define MR_NN_PARAMETERS_MAX ((uint64_t)1 << 30)
#define MR_NN_MODEL_BYTES_MAX ((size_t)1024 * 1024) /* limit of the bytes of the JSON text */

enum mr_nn_kind {
    MR_NN_DENSE,
    MR_NN_CONV2D,
    MR_NN_MAXPOOL2D,
    MR_NN_FLATTEN,
    MR_NN_RESHAPE,
    MR_NN_RELU,
    MR_NN_TANH,
    MR_NN_SIGMOID,
    MR_NN_SOFTMAX,
    MR_NN_DROPOUT,
    MR_NN_BATCHNORM,
    MR_NN_KINDS,
};

/* Initial values of a kernel. Biases start at 0; BatchNorm starts at scale 1, shift 0, mean 0,
 * variance 1. Glorot and Bengio 2010; He et al. 2015. */
enum mr_nn_init {
    MR_NN_GLOROT_UNIFORM, /* uniform within ±sqrt(6 / (fan_in + fan_out)); the default */
    /* A normal distribution without the values beyond 2 deviations (they are drawn again), scaled
     * to the deviation sqrt(2 / (fan_in + fan_out)). */
    MR_NN_GLOROT_NORMAL,
    MR_NN_HE_UNIFORM, /* uniform within ±sqrt(6 / fan_in) */
    /* Like MR_NN_GLOROT_NORMAL, but with the deviation sqrt(2 / fan_in). */
    MR_NN_HE_NORMAL,
    MR_NN_INITS,
};

struct mr_nn_shape {
    uint32_t rank;
    uint32_t dims[MR_NN_RANK_MAX];
};

struct mr_nn_layer {
    enum mr_nn_kind kind;
    char name[MR_NN_NAME_BYTES_MAX];
    struct mr_nn_shape in, out; /* shapes of one example */
    uint32_t kernel[2], stride[2];
    uint32_t pad_before[2], pad_after[2];
    bool bias;
    enum mr_nn_init init;
    float rate;                  /* share of the numbers that Dropout drops */
    uint64_t seed;               /* Dropout */
    float momentum, epsilon;     /* BatchNorm */
    uint64_t offset, count;      /* range of the layer's trainable parameters in the vector */
    uint64_t state, state_count; /* range of the layer's state in the vector */
};

struct mr_nn_param {
    uint32_t layer;
    const char *name; /* "kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance" */
    struct mr_nn_shape shape;
    uint64_t offset, count; /* range of the parameter in the vector */
    bool trainable;
};

struct mr_nn_model {
    struct mr_nn_shape input, output;
    /* In the order of the network. The field "activation" makes a layer of its own, such as
     * "out.softmax". */
    struct mr_nn_layer *layers;
    uint32_t layers_count;
    struct mr_nn_param *params; /* ordered by offset, without gaps */
    uint32_t params_count;
    uint64_t count; /* numbers in the vector */
    /* The first `trainable_count` numbers of the vector are trainable. */
    uint64_t trainable_count;
    char *text; /* the JSON text of the model */
    size_t text_bytes;
};

/* Makes a model from JSON. An error text names the index and name of the layer, the field, and what
 * is allowed. */
int mr_nn_model_new(struct mr_str json, struct mr_nn_model **out, struct mr_error *e);
void mr_nn_model_free(struct mr_nn_model **m);
/* Returns the JSON text, lent for the life of the model. */
struct mr_str mr_nn_model_text(const struct mr_nn_model *m);

/* Writes initial values for all `m->count` numbers. The same seed gives the same numbers on every
 * machine with IEEE arithmetic and the same libm. */
void mr_nn_model_init(const struct mr_nn_model *m, uint64_t seed, float *params);

uint64_t mr_nn_shape_count(const struct mr_nn_shape *s);
const char *mr_nn_kind_name(enum mr_nn_kind k);
