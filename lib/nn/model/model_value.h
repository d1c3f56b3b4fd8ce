/* A model with its parameters as a value (store/object/value.h): kind model, element type f32, one
 * axis. The data are the parameters as one vector (model.h), the meta is a pack, a map of
 * "model": its JSON text, and "version": the updates it has seen. */
#pragma once

#include "nn/model/model.h"
#include "store/object/value.h"

struct mr_nn_model_view { /* borrowed from the value */
    struct mr_str text;   /* the model's JSON */
    uint64_t version;
    const float *params; /* 64-byte aligned */
    uint64_t count;
};

/* One extent from `a`; `*params_out` is where the caller writes m->count numbers. */
int mr_nn_model_value_new(const struct mr_value_alloc *a, const struct mr_nn_model *m,
    uint64_t version, float **params_out, struct mr_error *e);

/* Cheap: the text is not read. MR_EINVAL for another kind of value, MR_EFORMAT for a damaged one.
 */
int mr_nn_model_value_view(
    const struct mr_value *v, struct mr_nn_model_view *out, struct mr_error *e);
/* Reads the text as well, and checks that there are as many parameters as the model has. */
int mr_nn_model_value_open(const struct mr_value *v, struct mr_nn_model_view *out,
    struct mr_nn_model **model_out, struct mr_error *e);
