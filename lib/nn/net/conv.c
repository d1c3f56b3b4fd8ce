/* Conv2D and MaxPool2D on images with the axes height, width, channels. The parameter vector stores
 * kernels in Keras' layout, and kernels change with every step. oneDNN chooses its own layout, so
 * kernels are reordered before use if the layouts differ, and gradients are reordered back. */
#include "base/alloc.h"
#include "nn/net/internal.h"

struct window {
    dnnl_dims_t stride, before, after, kernel;
};

static struct window window_of(const struct mr_nn_layer *l)
{
    struct window w = {0};
    for (int i = 0; i < 2; i++) {
        w.stride[i] = l->stride[i];
        w.before[i] = l->pad_before[i];
        w.after[i] = l->pad_after[i];
        w.kernel[i] = l->kernel[i];
    }
    return w;
}

static int no_memory(const struct mr_nn_unit *u, struct mr_error *e)
{
    return mr_fail(e, MR_ELIMIT, "nn: layer \"%s\" needs too much memory", u->layer->name);
}

/* ---- kernels --------------------------------------------------------------------------------- */

static dnnl_memory_desc_t kernel_desc(const struct mr_nn_layer *l, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {l->out.dims[2], l->in.dims[2], l->kernel[0], l->kernel[1]};
    (void)dnnl_memory_desc_init_by_tag(&md, 4, dims, dnnl_f32, tag);
    return md;
}

static dnnl_memory_desc_t bias_desc(const struct mr_nn_layer *l)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {l->out.dims[2]};
    (void)dnnl_memory_desc_init_by_tag(&md, 1, dims, dnnl_f32, dnnl_a);
    return md;
}

/* Makes a reorder primitive between the layout of the vector and oneDNN's layout, with memory for
 * oneDNN's layout in `*packed`. Makes nothing if the layouts agree. */
static int reorder(struct mr_nn_net *n, struct mr_nn_unit *u, const dnnl_memory_desc_t *theirs,
    bool back, struct mr_nn_primitive *p, void **packed, struct mr_error *e)
{
    dnnl_memory_desc_t ours = kernel_desc(u->layer, dnnl_hwio);
    if (dnnl_memory_desc_equal(&ours, theirs)) return MR_OK;
    *packed = mr_nn__memory(n, dnnl_memory_desc_get_size(theirs));
    if (!*packed) return no_memory(u, e);
    const dnnl_memory_desc_t *from = back ? theirs : &ours, *to = back ? &ours : theirs;
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    if (dnnl_reorder_primitive_desc_create(&pd, from, n->engine, to, n->engine, n->attr))
        return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": no reorder", u->layer->name);
    int err = mr_nn__make(n, pd, p, e);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_FROM, from, back ? *packed : NULL);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_TO, to, back ? NULL : *packed);
    return err;
}

/* ---- Conv2D ---------------------------------------------------------------------------------- */

struct conv {
    /* The descriptor `w` leaves the choice of the layout to oneDNN. */
    dnnl_memory_desc_t x, y, w, b;
    struct window window;
    dnnl_primitive_desc_t forward; /* a hint for the descriptors of the backward primitives */
};

static int build_forward(
    struct mr_nn_net *n, struct mr_nn_unit *u, struct conv *c, struct mr_error *e)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t bad = dnnl_convolution_forward_desc_init(&d, dnnl_forward_training,
        dnnl_convolution_direct, &c->x, &c->w, u->layer->bias ? &c->b : NULL, &c->y,
        c->window.stride, c->window.before, c->window.after);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    int err = mr_nn__describe(n, &d, NULL, &c->forward, e);
    if (err) return err;
    const dnnl_memory_desc_t *w =
        dnnl_primitive_desc_query_md(c->forward, dnnl_query_weights_md, 0);
    err = reorder(n, u, w, false, &u->pack, &u->packed, e);
    if (!err) err = mr_nn__make(n, c->forward, &u->forward, e);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_SRC, &c->x, NULL);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_WEIGHTS, w, u->packed);
    if (!err && u->layer->bias) err = mr_nn__bind(n, &u->forward, DNNL_ARG_BIAS, &c->b, NULL);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_DST, &c->y, u->y);
    return err;
}

static int build_backward_data(
    struct mr_nn_net *n, struct mr_nn_unit *u, struct conv *c, struct mr_error *e)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t bad = dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &c->x,
        &c->w, &c->y, c->window.stride, c->window.before, c->window.after);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    int err = mr_nn__describe(n, &d, c->forward, &pd, e);
    if (err) return err;
    const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    err = reorder(n, u, w, false, &u->pack_backward, &u->packed_backward, e);
    if (!err) err = mr_nn__make(n, pd, &u->backward, e);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_DIFF_DST, &c->y, u->dy);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_WEIGHTS, w, u->packed_backward);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_DIFF_SRC, &c->x, u->dx);
    return err;
}

static int build_backward_weights(
    struct mr_nn_net *n, struct mr_nn_unit *u, struct conv *c, struct mr_error *e)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t bad = dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct,
        &c->x, &c->w, u->layer->bias ? &c->b : NULL, &c->y, c->window.stride, c->window.before,
        c->window.after);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    int err = mr_nn__describe(n, &d, c->forward, &pd, e);
    if (err) return err;
    const dnnl_memory_desc_t *w = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0);
    struct mr_nn_primitive *p = &u->backward_w;
    err = reorder(n, u, w, true, &u->unpack, &u->packed_dw, e);
    if (!err) err = mr_nn__make(n, pd, p, e);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_SRC, &c->x, NULL);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_DIFF_DST, &c->y, u->dy);
    if (!err) err = mr_nn__bind(n, p, DNNL_ARG_DIFF_WEIGHTS, w, u->packed_dw);
    if (!err && u->layer->bias) err = mr_nn__bind(n, p, DNNL_ARG_DIFF_BIAS, &c->b, NULL);
    return err;
}

static int conv_build(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e)
{
    struct conv c = {.x = mr_nn__image(n, &u->layer->in),
        .y = mr_nn__image(n, &u->layer->out),
        .w = kernel_desc(u->layer, dnnl_format_tag_any),
        .b = bias_desc(u->layer),
        .window = window_of(u->layer)};
    int err = build_forward(n, u, &c, e);
    if (!err && !n->for_use) err = build_backward_weights(n, u, &c, e);
    if (!err && u->dx) err = build_backward_data(n, u, &c, e);
    mr_nn__desc_free(&c.forward);
    return err;
}

/* Gives the kernel to the primitive `user`. If the layouts differ, `pack` writes a reordered copy
 * for `user`. If the layouts agree, `user` reads the kernel in the parameter vector. */
static int take_kernel(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_nn_primitive *pack,
    struct mr_nn_primitive *user)
{
    if (!pack->p) {
        mr_nn__point(user, DNNL_ARG_WEIGHTS, u->w);
        return 0;
    }
    mr_nn__point(pack, DNNL_ARG_FROM, u->w);
    return mr_nn__run(n, pack);
}

static uint64_t kernel_count(const struct mr_nn_unit *u)
{
    return u->layer->count - (u->layer->bias ? u->layer->out.dims[2] : 0);
}

static int conv_forward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    int status = take_kernel(n, u, &u->pack, &u->forward);
    if (status) return status;
    mr_nn__point(&u->forward, DNNL_ARG_SRC, u->x);
    mr_nn__point(&u->forward, DNNL_ARG_BIAS, u->w + kernel_count(u));
    return mr_nn__run(n, &u->forward);
}

static int conv_backward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    mr_nn__point(&u->backward_w, DNNL_ARG_SRC, u->x);
    mr_nn__point(&u->backward_w, DNNL_ARG_DIFF_BIAS, u->dw + kernel_count(u));
    if (!u->unpack.p) mr_nn__point(&u->backward_w, DNNL_ARG_DIFF_WEIGHTS, u->dw);
    int status = mr_nn__run(n, &u->backward_w);
    if (status) return status;
    if (u->unpack.p) {
        mr_nn__point(&u->unpack, DNNL_ARG_TO, u->dw);
        status = mr_nn__run(n, &u->unpack);
        if (status) return status;
    }
    mr_nn__grads_ready(n, u);
    if (!u->dx) return 0;
    status = take_kernel(n, u, &u->pack_backward, &u->backward);
    return status ? status : mr_nn__run(n, &u->backward);
}

const struct mr_nn_kind_ops mr_nn__conv = {
    .build = conv_build, .forward = conv_forward, .backward = conv_backward};

/* ---- MaxPool2D ------------------------------------------------------------------------------- */

static int pool_build_backward(struct mr_nn_net *n, struct mr_nn_unit *u,
    const_dnnl_primitive_desc_t hint, const dnnl_memory_desc_t *ws, struct mr_error *e)
{
    dnnl_memory_desc_t x = mr_nn__image(n, &u->layer->in), y = mr_nn__image(n, &u->layer->out);
    struct window w = window_of(u->layer);
    dnnl_pooling_desc_t d;
    dnnl_status_t bad = dnnl_pooling_backward_desc_init(
        &d, dnnl_pooling_max, &x, &y, w.stride, w.kernel, w.before, w.after);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    int err = mr_nn__describe(n, &d, hint, &pd, e);
    if (!err) err = mr_nn__make(n, pd, &u->backward, e);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_DIFF_DST, &y, u->dy);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_DIFF_SRC, &x, u->dx);
    if (!err) err = mr_nn__bind(n, &u->backward, DNNL_ARG_WORKSPACE, ws, u->workspace);
    return err;
}

static int pool_build(struct mr_nn_net *n, struct mr_nn_unit *u, struct mr_error *e)
{
    dnnl_memory_desc_t x = mr_nn__image(n, &u->layer->in), y = mr_nn__image(n, &u->layer->out);
    struct window w = window_of(u->layer);
    dnnl_pooling_desc_t d;
    dnnl_status_t bad = dnnl_pooling_forward_desc_init(
        &d, dnnl_forward_training, dnnl_pooling_max, &x, &y, w.stride, w.kernel, w.before, w.after);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: layer \"%s\": status %d", u->layer->name, bad);
    MR_AUTO(mr_nn__desc_free) dnnl_primitive_desc_t pd = NULL;
    int err = mr_nn__describe(n, &d, NULL, &pd, e);
    if (err) return err;
    const dnnl_memory_desc_t *ws = dnnl_primitive_desc_query_md(pd, dnnl_query_workspace_md, 0);
    u->workspace = mr_nn__memory(n, dnnl_memory_desc_get_size(ws));
    if (!u->workspace) return no_memory(u, e);
    err = mr_nn__make(n, pd, &u->forward, e);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_SRC, &x, NULL);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_DST, &y, u->y);
    if (!err) err = mr_nn__bind(n, &u->forward, DNNL_ARG_WORKSPACE, ws, u->workspace);
    if (err || !u->dx) return err;
    return pool_build_backward(n, u, pd, ws, e);
}

static int pool_forward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    mr_nn__point(&u->forward, DNNL_ARG_SRC, u->x);
    return mr_nn__run(n, &u->forward);
}

static int pool_backward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    return mr_nn__run(n, &u->backward);
}

const struct mr_nn_kind_ops mr_nn__pool = {
    .build = pool_build, .forward = pool_forward, .backward = pool_backward};
