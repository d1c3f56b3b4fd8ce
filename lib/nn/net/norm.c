/* BatchNorm over the last axis (Ioffe and Szegedy 2015). Training normalises with mean and biased
 * variance of the batch, and reports the changes of the moving statistics as gradients of the
 * state. Inference normalises with the moving statistics. */
#include "nn/net/internal.h"

static uint64_t channels(const struct mr_nn_unit *u)
{
    return u->layer->in.dims[u->layer->in.rank - 1];
}

/* Describes an input of any rank as images of width 1: the last axis gives the channels, and the
 * product of the other axes the height. The statistics of the channels stay the same. */
static dnnl_memory_desc_t data_desc(const struct mr_nn_net *n, const struct mr_nn_unit *u)
{
    uint64_t c = channels(u);
    struct mr_nn_shape s = {3, {(uint32_t)(mr_nn_shape_count(&u->layer->in) / c), 1, (uint32_t)c}};
    return mr_nn__image(n, &s);
}

static dnnl_memory_desc_t row_desc(uint64_t count)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {(dnnl_dim_t)count};
    (void)dnnl_memory_desc_init_by_tag(&md, 1, dims, dnnl_f32, dnnl_a);
    return md;
}

static int bind(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_nn_primitive *p)
{
    dnnl_memory_desc_t data = data_desc(n, u), row = row_desc(channels(u));
    dnnl_memory_desc_t scale = mr_nn__rows(2, channels(u));
    int err = mr_nn__bind(n, p, DNNL_ARG_SRC, &data, NULL);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_SCALE_SHIFT, &scale, NULL);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_MEAN, &row, p == &u->infer ? NULL : u->mean);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_VARIANCE, &row, p == &u->infer ? NULL : u->variance);
    if (p != &u->backward) return err ? err : mr_nn__bind(n, p, DNNL_ARG_DST, &data, u->y);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_DIFF_DST, &data, u->dy);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_DIFF_SRC, &data, u->dx ? u->dx : u->workspace);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_DIFF_SCALE_SHIFT, &scale, NULL);
    return err;
}

static int build_forward(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_nn_primitive *p,
    dnnl_primitive_desc_t *pd, struct mr_error *e)
{
    dnnl_memory_desc_t data = data_desc(n, u);
    dnnl_batch_normalization_desc_t d;
    bool infer = p == &u->infer;
    dnnl_status_t bad = dnnl_batch_normalization_forward_desc_init(&d,
        infer ? dnnl_forward_inference : dnnl_forward_training, &data, u->layer->epsilon,
        dnnl_use_scaleshift | (infer ? dnnl_use_global_stats : 0u));
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    int err = mr_nn__describe(n, &d, NULL, pd, e);
    if (!err) err = mr_nn__make(n, *pd, p, e);
    return err ? err : bind(n, u, p);
}

static int build_backward(
    struct mr_nn_net *n, struct mr_nn_unit *u, const_dnnl_primitive_desc_t hint, struct mr_error *e)
{
    dnnl_memory_desc_t data = data_desc(n, u);
    dnnl_batch_normalization_desc_t d;
    dnnl_status_t bad = dnnl_batch_normalization_backward_desc_init(
        &d, dnnl_backward, &data, &data, u->layer->epsilon, dnnl_use_scaleshift);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    int err = mr_nn__describe(n, &d, hint, &pd, e);
    if (!err) err = mr_nn__make(n, pd, &u->backward, e);
    return err ? err : bind(n, u, &u->backward);
}

static int build(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e)
{
    uint64_t c = channels(u);
    u->mean = mr_nn__memory(n, c * sizeof(float));
    u->variance = mr_nn__memory(n, c * sizeof(float));
    /* The first layer needs no derivative of its input, but oneDNN writes one, so the derivative
     * gets memory. */
    if (!u->dx && !n->for_use)
        u->workspace =
            mr_nn__memory(n, n->batch * mr_nn_shape_count(&u->layer->in) * sizeof(float));
    if (!u->mean || !u->variance || (!u->dx && !n->for_use && !u->workspace))
        return mr_fail(e, MR_ELIMIT, "nn: layer \"%s\" needs too much memory", u->layer->name);
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd_infer = NULL;
    int err = build_forward(n, u, &u->infer, &pd_infer, e);
    if (err || n->for_use) return err;
    err = build_forward(n, u, &u->forward, &pd, e);
    return err ? err : build_backward(n, u, pd, e);
}

static int forward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    struct mr_nn_primitive *p = n->training ? &u->forward : &u->infer;
    mr_nn__point(p, DNNL_ARG_SRC, u->x);
    mr_nn__point(p, DNNL_ARG_SCALE_SHIFT, u->w);
    if (!n->training) {
        mr_nn__point(p, DNNL_ARG_MEAN, u->state);
        mr_nn__point(p, DNNL_ARG_VARIANCE, u->state + channels(u));
    }
    return mr_nn__run(n, p);
}

static int backward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    mr_nn__point(&u->backward, DNNL_ARG_SRC, u->x);
    mr_nn__point(&u->backward, DNNL_ARG_SCALE_SHIFT, u->w);
    mr_nn__point(&u->backward, DNNL_ARG_DIFF_SCALE_SHIFT, u->dw);
    uint64_t c = channels(u);
    float share = 1 - u->layer->momentum;
    for (uint64_t i = 0; i < c; i++) {
        u->dstate[i] = share * (u->state[i] - u->mean[i]);
        u->dstate[c + i] = share * (u->state[c + i] - u->variance[i]);
    }
    int status = mr_nn__run(n, &u->backward);
    if (!status) mr_nn__grads_ready(n, u);
    return status;
}

const struct mr_nn_kind_ops mr_nn__norm = {
    .build = build, .forward = forward, .backward = backward};
