/* Shared by net.c and the files of the layers; private to this folder's own files.
 *
 * A unit is one layer at work. Its buffers are fixed when the net is made; only `x` of the first
 * unit is the caller's. Tensors have the axes batch, height, width, channels. */
#pragma once

#include "nn/net/net.h"

#include <oneapi/dnnl/dnnl.h>

#define MR_NN_ARGS_MAX 8

struct mr_nn_primitive { /* a oneDNN primitive with its arguments bound to memory */
    dnnl_primitive_t p;
    dnnl_exec_arg_t args[MR_NN_ARGS_MAX];
    int count;
};

struct mr_nn_unit {
    const struct mr_nn_layer *layer;
    const struct mr_nn_kind_ops *kind;
    float *x, *y;   /* input and output; equal for layers that work in place */
    float *owned;   /* memory of y; NULL: y shares other memory */
    float *dx, *dy; /* derivatives of the loss by x and by y; dx is NULL if no layer needs it */
    /* The layer's numbers in the vectors that the caller passed: `w` and `state` point into the
     * parameters, `dw` and `dstate` into the gradient. The state is BatchNorm's moving mean and
     * variance (model/model.h). */
    const float *w;
    float *dw;
    const float *state;
    float *dstate;

    struct mr_nn_primitive forward, backward, backward_w, infer;
    /* For a convolution whose kernel has another layout in oneDNN than in the model's vector
     * (model/model.h): reorder the kernel for oneDNN, and its gradient back. */
    struct mr_nn_primitive pack, pack_backward, unpack;
    void *packed, *packed_backward, *packed_dw, *workspace;
    float *mean, *variance; /* mean and variance of the channels of this batch */
};

struct mr_nn_net {
    const struct mr_nn_model *model;
    uint32_t batch;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
    struct mr_nn_unit *units;
    uint32_t units_count;
    /* The first unit with parameters; the backward pass ends there. */
    uint32_t first;
    void *scratch; /* oneDNN's scratchpad, sized for the largest primitive */
    size_t scratch_bytes;
    uint64_t bytes; /* bytes allocated so far, at most MR_NN_NET_BYTES_MAX */
    float *grad[2]; /* dx and dy of the backward pass, in alternation */
    bool for_use;   /* true: the net only predicts and scores, without a backward pass */
    bool training;
    uint64_t step;
    mr_nn_ready ready;
    void *ready_ctx;
};

struct mr_nn_kind_ops {
    /* Prepares a unit; may be NULL. */
    int (*build)(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e);
    int (*forward)(struct mr_nn_net *n, struct mr_nn_unit *u);
    int (*backward)(struct mr_nn_net *n, struct mr_nn_unit *u);
    bool alias; /* y is x and dy is dx, because only the shape differs */
    /* The layer may overwrite x with y if the previous layer does not need its output. */
    bool in_place;
    bool needs_y; /* the backward pass reads y */
};

extern const struct mr_nn_kind_ops mr_nn__dense, mr_nn__conv, mr_nn__pool, mr_nn__alias,
    mr_nn__relu, mr_nn__tanh, mr_nn__sigmoid, mr_nn__softmax, mr_nn__dropout, mr_nn__norm;

/* Allocates zeroed memory for a buffer of the net; mr_nn_net_free releases the buffers. NULL: the
 * net would exceed MR_NN_NET_BYTES_MAX. */
void *mr_nn__memory(struct mr_nn_net *n, uint64_t bytes);

/* Makes a primitive descriptor `pd` from an operation descriptor. `hint` is the descriptor of the
 * forward primitive, or NULL. The caller destroys `pd`. */
int mr_nn__describe(struct mr_nn_net *n, const void *op, const_dnnl_primitive_desc_t hint,
    dnnl_primitive_desc_t *pd, struct mr_error *e);
int mr_nn__make(struct mr_nn_net *n, const_dnnl_primitive_desc_t pd, struct mr_nn_primitive *p,
    struct mr_error *e);
/* Binds an argument to memory. If `handle` is NULL, mr_nn__point sets it before each run. */
int mr_nn__bind(struct mr_nn_net *n, struct mr_nn_primitive *p, int arg,
    const dnnl_memory_desc_t *md, const void *handle);
void mr_nn__point(struct mr_nn_primitive *p, int arg, const void *handle);
int mr_nn__run(struct mr_nn_net *n, struct mr_nn_primitive *p);
void mr_nn__primitive_fini(struct mr_nn_primitive *p);
void mr_nn__desc_free(dnnl_primitive_desc_t *pd); /* cleanup function for MR_AUTO (base/defs.h) */

/* Reports that the gradients of the unit (or a part of them) are final, before dx is computed. */
void mr_nn__grads_ready(struct mr_nn_net *n, const struct mr_nn_unit *u);
void mr_nn__grads_ready_part(
    struct mr_nn_net *n, const struct mr_nn_unit *u, uint64_t first, uint64_t count);

dnnl_memory_desc_t mr_nn__rows(uint64_t rows, uint64_t columns);
dnnl_memory_desc_t mr_nn__image(const struct mr_nn_net *n, const struct mr_nn_shape *s);
