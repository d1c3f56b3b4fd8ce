/* What net.c and the files of layers share; for each other only, nobody else includes it.
 *
 * A unit is one layer at work. Its buffers are fixed when the net is made, except `x` of the first
 * unit, which is the caller's. Tensors lie as batch, height, width, channels throughout. */
#pragma once

#include "nn/net/net.h"

#include <oneapi/dnnl/dnnl.h>

#define MR_NN_ARGS_MAX 8

struct mr_nn_primitive { /* a primitive with its arguments bound to memory */
    dnnl_primitive_t p;
    dnnl_exec_arg_t args[MR_NN_ARGS_MAX];
    int count;
};

struct mr_nn_unit {
    const struct mr_nn_layer *layer;
    const struct mr_nn_kind_ops *kind;
    float *x, *y;   /* in and out; the same for layers that change nothing or work in place */
    float *owned;   /* the memory behind y, if it has its own */
    float *dx, *dy; /* derivative by each; dx is NULL where nobody needs it */
    const float *w; /* the layer's parameters and state in this call */
    float *dw;
    const float *state;
    float *dstate;

    struct mr_nn_primitive forward, backward, backward_w, infer;
    struct mr_nn_primitive pack, pack_backward,
        unpack; /* kernel between the vector's layout and oneDNN's */
    void *packed, *packed_backward, *packed_dw, *workspace;
    float *mean, *variance; /* of this batch */
};

struct mr_nn_net {
    const struct mr_nn_model *model;
    uint32_t batch;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
    struct mr_nn_unit *units;
    uint32_t units_count;
    uint32_t first; /* the first unit with parameters: nothing before it runs backward */
    void *scratch;  /* oneDNN's, as large as the hungriest primitive wants */
    size_t scratch_bytes;
    uint64_t bytes; /* allocated so far, against MR_NN_NET_BYTES_MAX */
    float *grad[2]; /* the derivative travels between the two */
    bool for_use;   /* nothing runs backward */
    bool training;
    uint64_t step;
    mr_nn_ready ready;
    void *ready_ctx;
};

struct mr_nn_kind_ops {
    int (*build)(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e); /* may be NULL */
    int (*forward)(struct mr_nn_net *n, struct mr_nn_unit *u);
    int (*backward)(struct mr_nn_net *n, struct mr_nn_unit *u);
    bool alias;    /* y is x and dy is dx: only the shape is another */
    bool in_place; /* may write y over x, when the layer before does not need its y */
    bool needs_y;  /* backward reads y */
};

extern const struct mr_nn_kind_ops mr_nn__dense, mr_nn__conv, mr_nn__pool, mr_nn__alias,
    mr_nn__relu, mr_nn__tanh, mr_nn__sigmoid, mr_nn__softmax, mr_nn__dropout, mr_nn__norm;

/* Memory of the net's life; NULL past the limit. */
void *mr_nn__memory(struct mr_nn_net *n, uint64_t bytes);

/* Makes the primitive from an operation's descriptor; `hint` is the forward one's descriptor, or
 * NULL. `pd` receives the descriptor, to be destroyed by the caller. */
int mr_nn__describe(struct mr_nn_net *n, const void *op, const_dnnl_primitive_desc_t hint,
    dnnl_primitive_desc_t *pd, struct mr_error *e);
int mr_nn__make(struct mr_nn_net *n, const_dnnl_primitive_desc_t pd, struct mr_nn_primitive *p,
    struct mr_error *e);
/* Binds an argument. A handle of NULL is set by mr_nn__point before each run. */
int mr_nn__bind(struct mr_nn_net *n, struct mr_nn_primitive *p, int arg,
    const dnnl_memory_desc_t *md, const void *handle);
void mr_nn__point(struct mr_nn_primitive *p, int arg, const void *handle);
int mr_nn__run(struct mr_nn_net *n, struct mr_nn_primitive *p);
void mr_nn__primitive_fini(struct mr_nn_primitive *p);
void mr_nn__desc_free(dnnl_primitive_desc_t *pd); /* for MR_AUTO */

/* The unit's gradients are final: said as soon as they are, before the derivative by its input. */
void mr_nn__grads_ready(struct mr_nn_net *n, const struct mr_nn_unit *u);
void mr_nn__grads_ready_part(
    struct mr_nn_net *n, const struct mr_nn_unit *u, uint64_t first, uint64_t count);

dnnl_memory_desc_t mr_nn__rows(uint64_t rows, uint64_t columns);
dnnl_memory_desc_t mr_nn__image(const struct mr_nn_net *n, const struct mr_nn_shape *s);
