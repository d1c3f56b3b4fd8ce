/* Shared by model.c and model_json.c only: the fields of one layer, read from JSON. */
#pragma once

#include "nn/model/model.h"

#include <yyjson.h>

struct mr_nn_entry {
    struct mr_nn_layer layer; /* kind, name and options; model.c computes the shapes */
    bool same;                /* true: padding "same"; false: "valid" */
    bool has_stride;
    uint32_t units;           /* units of a Dense layer, filters of a Conv2D layer */
    struct mr_nn_shape shape; /* shape that a Reshape layer makes */
    bool has_activation;
    enum mr_nn_kind activation;
};

/* Reads one layer. `number` is the layer's index in the list, for error texts and default names. */
int mr_nn_entry_read(yyjson_val *v, size_t number, struct mr_nn_entry *out, struct mr_error *e);
int mr_nn_shape_read(yyjson_val *v, const char *where, uint32_t rank_max, struct mr_nn_shape *out,
    struct mr_error *e);
