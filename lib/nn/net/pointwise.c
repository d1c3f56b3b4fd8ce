/* Layers without parameters: Relu, Tanh, Sigmoid, Softmax over the last axis, Dropout. Their
 * backward passes do not read x, so x may be overwritten. */
#include "base/rng.h"
#include "nn/net/internal.h"

static dnnl_memory_desc_t rows_of(const struct mr_nn_net *n, const struct mr_nn_shape *s)
{
    uint64_t columns = s->dims[s->rank - 1];
    return mr_nn__rows(n->batch * mr_nn_shape_count(s) / columns, columns);
}

/* ---- activations ----------------------------------------------------------------------------- */

static int build(struct mr_nn_net *n, struct mr_nn_unit *u, const void *forward,
    const void *backward, struct mr_error *e)
{
    dnnl_memory_desc_t md = rows_of(n, &u->layer->in);
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    int err = mr_nn__describe(n, forward, NULL, &pd, e);
    if (!err) err = mr_nn__make(n, pd, &u->forward, e);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_SRC, &md, NULL);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_DST, &md, u->y);
    if (err || !u->dx) return err;

    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd_back = NULL;
    err = mr_nn__describe(n, backward, pd, &pd_back, e);
    if (!err) err = mr_nn__make(n, pd_back, &u->backward, e);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_DST, &md, u->y);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_DIFF_DST, &md, u->dy);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_DIFF_SRC, &md, u->dx);
    return err;
}

static int build_eltwise(struct mr_nn_net *n, struct mr_nn_unit *u, dnnl_alg_kind_t forward,
    dnnl_alg_kind_t backward, struct mr_error *e)
{
    dnnl_memory_desc_t md = rows_of(n, &u->layer->in);
    dnnl_eltwise_desc_t f, b;
    dnnl_status_t bad =
        dnnl_eltwise_forward_desc_init(&f, dnnl_forward_training, forward, &md, 0, 0);
    if (!bad) bad = dnnl_eltwise_backward_desc_init(&b, backward, &md, &md, 0, 0);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    return build(n, u, &f, &b, e);
}

static int build_relu(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e)
{
    return build_eltwise(
        n, u, dnnl_eltwise_relu_use_dst_for_bwd, dnnl_eltwise_relu_use_dst_for_bwd, e);
}

static int build_tanh(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e)
{
    return build_eltwise(
        n, u, dnnl_eltwise_tanh_use_dst_for_bwd, dnnl_eltwise_tanh_use_dst_for_bwd, e);
}

static int build_sigmoid(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e)
{
    return build_eltwise(
        n, u, dnnl_eltwise_logistic_use_dst_for_bwd, dnnl_eltwise_logistic_use_dst_for_bwd, e);
}

static int build_softmax(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e)
{
    dnnl_memory_desc_t md = rows_of(n, &u->layer->in);
    dnnl_softmax_desc_t f, b;
    dnnl_status_t bad = dnnl_softmax_forward_desc_init(&f, dnnl_forward_training, &md, 1);
    if (!bad) bad = dnnl_softmax_backward_desc_init(&b, &md, &md, 1);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    return build(n, u, &f, &b, e);
}

static int forward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    mr_nn__point(&u->forward, DNNL_ARG_SRC, u->x);
    return mr_nn__run(n, &u->forward);
}

static int backward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    return mr_nn__run(n, &u->backward);
}

#define POINTWISE(how)                                                                             \
    {                                                                                              \
        .build = how, .forward = forward, .backward = backward, .in_place = true, .needs_y = true  \
    }
const struct mr_nn_kind_ops mr_nn__relu = POINTWISE(build_relu);
const struct mr_nn_kind_ops mr_nn__tanh = POINTWISE(build_tanh);
const struct mr_nn_kind_ops mr_nn__sigmoid = POINTWISE(build_sigmoid);
const struct mr_nn_kind_ops mr_nn__softmax = POINTWISE(build_softmax);

/* ---- Dropout --------------------------------------------------------------------------------- */

/* Drops numbers at random, in the forward and in the backward pass. Each number of the generator
 * gives four draws of 16 bits. The backward pass repeats the draws, which costs less than storing
 * them. */
static void drop(
    const struct mr_nn_net *n, const struct mr_nn_unit *u, const float *from, float *to)
{
    uint64_t count = n->batch * mr_nn_shape_count(&u->layer->in);
    uint64_t below = (uint64_t)(u->layer->rate * 65536.0f);
    /* The kept numbers are multiplied by 1 / (1 - rate). The rate is rounded down to a multiple of
     * 1 / 65536. */
    float scale = 65536.0f / (float)(65536 - below);
    struct mr_rng r;
    mr_rng_init(&r, u->layer->seed + n->step * 0x9e3779b97f4a7c15u);
    uint64_t bits = 0;
    for (uint64_t i = 0; i < count; i++) {
        bits = i % 4 ? bits >> 16 : mr_rng_next(&r);
        to[i] = (bits & 0xffff) < below ? 0.0f : from[i] * scale;
    }
}

static int drop_forward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    if (n->training)
        drop(n, u, u->x, u->y);
    else if (u->y != u->x)
        memcpy(u->y, u->x, n->batch * mr_nn_shape_count(&u->layer->in) * sizeof(float));
    return 0;
}

static int drop_backward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    if (u->dx) drop(n, u, u->dy, u->dx);
    return 0;
}

const struct mr_nn_kind_ops mr_nn__dropout = {
    .forward = drop_forward, .backward = drop_backward, .in_place = true};
