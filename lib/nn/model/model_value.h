/* A model and its parameters as a value (store/object/value.h): kind MODEL, element type f32, one
 * axis. The data is the vector of parameters (model.h). The meta is a pack: a map with "model", the
 * JSON text, and "version", the number of updates that the parameters have received. */
#pragma once

#include "nn/model/model.h"
#include "store/object/value.h"

struct mr_nn_model_view { /* a view of a model's value; borrows the value's memory */
    struct mr_str text;   /* the model's JSON */
    uint64_t version;
    const float *params; /* parameters, 64-byte aligned */
    uint64_t count;
};

/* Allocates the value as one piece of memory from `a`. The caller writes m->count numbers to
 * `*params_out`. */
int mr_nn_model_value_new(const struct mr_value_alloc *a, const struct mr_nn_model *m,
    uint64_t version, float **params_out, struct mr_error *e);

/* Opens the value without parsing the JSON text. MR_EINVAL: the value is of another kind.
 * MR_EFORMAT: the value is damaged. */
int mr_nn_model_value_view(
    const struct mr_value *v, struct mr_nn_model_view *out, struct mr_error *e);
/* Opens the value, parses the JSON text, and checks that the model has as many parameters as the
 * value. The caller frees `*model_out`. */
int mr_nn_model_value_open(const struct mr_value *v, struct mr_nn_model_view *out,
    struct mr_nn_model **model_out, struct mr_error *e);
