/* Runs the units of a net; a unit is one layer at work. The forward pass goes from the first unit
 * to the last. The backward pass goes from the last unit back to the first unit that has
 * parameters. This file knows the order and the buffers; the arithmetic of each layer is in a file
 * of its own. */
#include "nn/net/net.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "nn/net/internal.h"
#include "nn/optim/simd.h"

#include <string.h>

/* A function of GNU OpenMP, on which oneDNN runs. It sets the number of threads for the calling
 * thread only. */
extern void omp_set_num_threads(int count);

static const struct mr_nn_kind_ops *const kinds[MR_NN_KINDS] = {
    [MR_NN_DENSE] = &mr_nn__dense,
    [MR_NN_CONV2D] = &mr_nn__conv,
    [MR_NN_MAXPOOL2D] = &mr_nn__pool,
    [MR_NN_FLATTEN] = &mr_nn__alias,
    [MR_NN_RESHAPE] = &mr_nn__alias,
    [MR_NN_RELU] = &mr_nn__relu,
    [MR_NN_TANH] = &mr_nn__tanh,
    [MR_NN_SIGMOID] = &mr_nn__sigmoid,
    [MR_NN_SOFTMAX] = &mr_nn__softmax,
    [MR_NN_DROPOUT] = &mr_nn__dropout,
    [MR_NN_BATCHNORM] = &mr_nn__norm,
};

/* ---- buffers --------------------------------------------------------------------------------- */

#define LINE 64 /* bytes; the alignment that oneDNN's kernels need */

void *mr_nn__memory(struct mr_nn_net *n, uint64_t bytes)
{
    if (bytes > MR_NN_NET_BYTES_MAX - n->bytes) return NULL;
    n->bytes += bytes;
    return mr_alloc_aligned((size_t)bytes, LINE);
}

static uint64_t bytes_of(const struct mr_nn_net *n, const struct mr_nn_shape *s)
{
    return n->batch * mr_nn_shape_count(s) * sizeof(float);
}

/* True: the unit may overwrite its input. False: the input is the caller's x, or it is the output
 * of an earlier unit that needs this output in the backward pass. */
static bool may_overwrite(const struct mr_nn_net *n, uint32_t i)
{
    if (i == 0) return false;
    const struct mr_nn_kind_ops *before = n->units[i - 1].kind;
    if (before->alias) return may_overwrite(n, i - 1);
    return n->for_use || !before->needs_y;
}

static bool forward_buffers(struct mr_nn_net *n)
{
    for (uint32_t i = 0; i < n->units_count; i++) {
        struct mr_nn_unit *u = &n->units[i];
        u->x = i ? n->units[i - 1].y : NULL;
        bool same = u->kind->alias || (u->kind->in_place && may_overwrite(n, i));
        u->owned = same ? NULL : mr_nn__memory(n, bytes_of(n, &u->layer->out));
        if (!same && !u->owned) return false;
        u->y = same ? u->x : u->owned;
    }
    return true;
}

static bool backward_buffers(struct mr_nn_net *n)
{
    if (n->for_use) return true;
    uint64_t most = bytes_of(n, &n->model->output);
    for (uint32_t i = n->first + 1; i < n->units_count; i++)
        most = MR_MAX(most, bytes_of(n, &n->units[i].layer->in));
    for (int i = 0; i < 2; i++) {
        n->grad[i] = mr_nn__memory(n, most);
        if (!n->grad[i]) return false;
    }
    int at = 0;
    for (uint32_t i = n->units_count; i-- > n->first;) {
        struct mr_nn_unit *u = &n->units[i];
        u->dy = n->grad[at];
        if (i == n->first) break;
        if (!u->kind->alias) at = !at;
        u->dx = n->grad[at];
    }
    return true;
}

/* ---- construction ---------------------------------------------------------------------------- */

static int engine_open(struct mr_nn_net *n, struct mr_error *e)
{
    dnnl_status_t bad = dnnl_engine_create(&n->engine, dnnl_cpu, 0);
    if (!bad) bad = dnnl_stream_create(&n->stream, n->engine, dnnl_stream_default_flags);
    if (!bad) bad = dnnl_primitive_attr_create(&n->attr);
    /* With oneDNN's own scratchpad, a primitive would be bound to the thread that made it. A net
     * may be used from any thread, so it provides the scratchpad. */
    if (!bad) bad = dnnl_primitive_attr_set_scratchpad_mode(n->attr, dnnl_scratchpad_mode_user);
    if (bad) return mr_fail(e, MR_EINTERNAL, "nn: oneDNN does not start: status %d", (int)bad);
    return MR_OK;
}

static void scratch_point(struct mr_nn_net *n)
{
    n->scratch = mr_alloc_aligned(n->scratch_bytes, LINE);
    for (uint32_t i = 0; i < n->units_count; i++) {
        struct mr_nn_unit *u = &n->units[i];
        struct mr_nn_primitive *all[] = {&u->forward, &u->backward, &u->backward_w, &u->infer,
            &u->pack, &u->pack_backward, &u->unpack};
        for (size_t k = 0; k < MR_ARRAY_LEN(all); k++)
            mr_nn__point(all[k], DNNL_ARG_SCRATCHPAD, n->scratch);
    }
}

static int units_build(struct mr_nn_net *n, struct mr_error *e)
{
    for (uint32_t i = 0; i < n->units_count; i++) {
        struct mr_nn_unit *u = &n->units[i];
        int err = u->kind->build ? u->kind->build(n, u, e) : MR_OK;
        if (err) return err;
    }
    scratch_point(n);
    return MR_OK;
}

static int net_new(const struct mr_nn_model *m, uint32_t batch, bool for_use,
    struct mr_nn_net **out, struct mr_error *e)
{
    if (batch < 1 || batch > MR_NN_BATCH_MAX)
        return mr_fail(
            e, MR_EINVAL, "nn: batch size %u, but 1 to %d is right", batch, MR_NN_BATCH_MAX);
    omp_set_num_threads(1);
    MR_AUTO(mr_nn_net_free) struct mr_nn_net *n = mr_alloc(sizeof *n);
    n->model = m;
    n->batch = batch;
    n->for_use = for_use;
    n->units = mr_alloc_array(m->layers_count, sizeof *n->units);
    n->units_count = m->layers_count;
    n->first = n->units_count;
    for (uint32_t i = 0; i < n->units_count; i++) {
        n->units[i].layer = &m->layers[i];
        n->units[i].kind = kinds[m->layers[i].kind];
        if (m->layers[i].count && n->first == n->units_count && !for_use) n->first = i;
    }
    int err = engine_open(n, e);
    if (err) return err;
    if (!forward_buffers(n) || !backward_buffers(n))
        return mr_fail(e, MR_ELIMIT, "nn: a batch of %u needs more than %llu bytes of activations",
            batch, (unsigned long long)MR_NN_NET_BYTES_MAX);
    err = units_build(n, e);
    if (err) return err;
    *out = MR_STEAL(n);
    return MR_OK;
}

int mr_nn_net_new(
    const struct mr_nn_model *m, uint32_t batch, struct mr_nn_net **out, struct mr_error *e)
{
    return net_new(m, batch, false, out, e);
}

int mr_nn_net_new_for_use(
    const struct mr_nn_model *m, uint32_t batch, struct mr_nn_net **out, struct mr_error *e)
{
    return net_new(m, batch, true, out, e);
}

static void unit_fini(struct mr_nn_unit *u)
{
    struct mr_nn_primitive *all[] = {&u->forward, &u->backward, &u->backward_w, &u->infer, &u->pack,
        &u->pack_backward, &u->unpack};
    for (size_t k = 0; k < MR_ARRAY_LEN(all); k++)
        mr_nn__primitive_fini(all[k]);
    mr_release(u->packed);
    mr_release(u->packed_backward);
    mr_release(u->packed_dw);
    mr_release(u->workspace);
    mr_release(u->mean);
    mr_release(u->variance);
}

void mr_nn_net_free(struct mr_nn_net **net)
{
    struct mr_nn_net *n = *net;
    if (!n) return;
    for (uint32_t i = 0; i < n->units_count; i++) {
        struct mr_nn_unit *u = &n->units[i];
        unit_fini(u);
        mr_release(u->owned);
    }
    mr_release(n->grad[0]);
    mr_release(n->grad[1]);
    mr_release(n->scratch);
    mr_release(n->units);
    if (n->attr) (void)dnnl_primitive_attr_destroy(n->attr);
    if (n->stream) (void)dnnl_stream_destroy(n->stream);
    if (n->engine) (void)dnnl_engine_destroy(n->engine);
    mr_release(n);
    *net = NULL;
}

void mr_nn_net_follow(struct mr_nn_net *n, mr_nn_ready ready, void *ctx)
{
    n->ready = ready;
    n->ready_ctx = ctx;
}

void mr_nn__grads_ready(struct mr_nn_net *n, const struct mr_nn_unit *u)
{
    const struct mr_nn_layer *l = u->layer;
    if (n->ready && l->count) n->ready(n->ready_ctx, l->offset, l->count);
    if (n->ready && l->state_count) n->ready(n->ready_ctx, l->state, l->state_count);
}

void mr_nn__grads_ready_part(
    struct mr_nn_net *n, const struct mr_nn_unit *u, uint64_t first, uint64_t count)
{
    if (n->ready && count) n->ready(n->ready_ctx, u->layer->offset + first, count);
}

uint32_t mr_nn_net_batch(const struct mr_nn_net *n)
{
    return n->batch;
}

/* ---- running --------------------------------------------------------------------------------- */

static int broken(const struct mr_nn_unit *u, int status, struct mr_error *e)
{
    return mr_fail(
        e, MR_EINTERNAL, "nn: layer \"%s\": oneDNN says status %d", u->layer->name, status);
}

/* Drops const, because oneDNN's interface has none. oneDNN does not write to a source. */
static float *writable(const float *p)
{
    return mr_unconst(p);
}

static int forward(
    struct mr_nn_net *n, uint32_t until, const float *params, const float *x, struct mr_error *e)
{
    omp_set_num_threads(1);
    float *at = writable(x);
    for (uint32_t i = 0; i < until; i++) {
        struct mr_nn_unit *u = &n->units[i];
        u->x = at;
        if (u->kind->alias) u->y = at;
        u->w = params + u->layer->offset;
        u->state = params + u->layer->state;
        int status = u->kind->forward ? u->kind->forward(n, u) : 0;
        if (status) return broken(u, status, e);
        at = u->y;
    }
    return MR_OK;
}

static int backward(struct mr_nn_net *n, uint32_t from, float *grads, struct mr_error *e)
{
    for (uint32_t i = from; i-- > n->first;) {
        struct mr_nn_unit *u = &n->units[i];
        u->dw = grads + u->layer->offset;
        u->dstate = grads + u->layer->state;
        int status = u->kind->backward ? u->kind->backward(n, u) : 0;
        if (status) return broken(u, status, e);
    }
    return MR_OK;
}

/* Returns the number of units that run before the loss. Cross-entropy includes a final Softmax,
 * which then does not run. */
static uint32_t before_loss(const struct mr_nn_net *n, enum mr_nn_loss loss)
{
    bool softmax = n->units[n->units_count - 1].layer->kind == MR_NN_SOFTMAX;
    return n->units_count - (loss == MR_NN_CROSS_ENTROPY && softmax);
}

static int compare(struct mr_nn_net *n, enum mr_nn_loss loss, uint32_t until,
    const struct mr_nn_batch *b, float *grad, struct mr_nn_score *score, struct mr_error *e)
{
    uint64_t k = n->model->output.dims[n->model->output.rank - 1];
    uint64_t rows = n->batch * mr_nn_shape_count(&n->model->output) / k;
    const float *out = until ? n->units[until - 1].y : b->x;
    return mr_nn_loss_add(loss, out, b->y, rows, k, grad, score, e);
}

int mr_nn_net_learn(struct mr_nn_net *n, enum mr_nn_loss loss, const float *params,
    const struct mr_nn_batch *b, float *grads, struct mr_nn_score *score, struct mr_error *e)
{
    mr_assert(!n->for_use);
    MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();
    n->training = true;
    n->step = b->step;
    uint32_t until = before_loss(n, loss);
    int err = forward(n, until, params, b->x, e);
    if (err) return err;
    float *grad = n->first < until ? n->units[until - 1].dy : NULL;
    err = compare(n, loss, until, b, grad, score, e);
    if (err) return err;
    return backward(n, until, grads, e);
}

int mr_nn_net_score(struct mr_nn_net *n, enum mr_nn_loss loss, const float *params,
    const struct mr_nn_batch *b, struct mr_nn_score *score, struct mr_error *e)
{
    MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();
    n->training = false;
    uint32_t until = before_loss(n, loss);
    int err = forward(n, until, params, b->x, e);
    if (err) return err;
    return compare(n, loss, until, b, NULL, score, e);
}

int mr_nn_net_predict(
    struct mr_nn_net *n, const float *params, const float *x, const float **out, struct mr_error *e)
{
    MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();
    n->training = false;
    int err = forward(n, n->units_count, params, x, e);
    if (err) return err;
    *out = n->units[n->units_count - 1].y;
    return MR_OK;
}
