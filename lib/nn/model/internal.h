/* Between model.c and model_json.c, for each other only: one layer's fields from JSON. */
#pragma once

#include "nn/model/model.h"

#include <yyjson.h>

struct mr_nn_entry {
    struct mr_nn_layer layer; /* kind, name and options; shapes by the caller */
    bool same;                /* padding */
    bool has_stride;
    uint32_t units;           /* of Dense; filters of Conv2D */
    struct mr_nn_shape shape; /* of Reshape */
    bool has_activation;
    enum mr_nn_kind activation;
};

/* `number` is the layer's place in the list, for messages and for the name it gets if it has none.
 */
int mr_nn_entry_read(yyjson_val *v, size_t number, struct mr_nn_entry *out, struct mr_error *e);
int mr_nn_shape_read(yyjson_val *v, const char *where, uint32_t rank_max, struct mr_nn_shape *out,
    struct mr_error *e);
