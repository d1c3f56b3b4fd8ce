#include "nn/net/rows.h"

#include "base/alloc.h"

struct mr_nn_rows {
    const struct mr_nn_model *model;
    uint32_t batch_max;
    uint64_t in, out, labels; /* number of inputs, outputs and labels of one example */
    struct mr_nn_net *whole, *rest;
};

uint64_t mr_nn_labels_per_example(const struct mr_nn_model *m)
{
    return mr_nn_shape_count(&m->output) / m->output.dims[m->output.rank - 1];
}

struct mr_nn_rows *mr_nn_rows_new(const struct mr_nn_model *m, uint32_t batch_max)
{
    struct mr_nn_rows *r = mr_alloc(sizeof *r);
    *r = (struct mr_nn_rows){.model = m,
        .batch_max = batch_max ? batch_max : MR_NN_ROWS_BATCH,
        .in = mr_nn_shape_count(&m->input),
        .out = mr_nn_shape_count(&m->output),
        .labels = mr_nn_labels_per_example(m)};
    return r;
}

void mr_nn_rows_free(struct mr_nn_rows **r)
{
    if (!*r) return;
    mr_nn_net_free(&(*r)->whole);
    mr_nn_net_free(&(*r)->rest);
    mr_release(*r);
    *r = NULL;
}

/* Returns the size of the next batch if `left` examples are left. */
static uint32_t batch_of(const struct mr_nn_rows *r, uint64_t left)
{
    return (uint32_t)MR_MIN(left, (uint64_t)r->batch_max);
}

static int net_of(struct mr_nn_rows *r, uint32_t n, struct mr_nn_net **out, struct mr_error *e)
{
    struct mr_nn_net **net = n == r->batch_max ? &r->whole : &r->rest;
    if (*net && mr_nn_net_batch(*net) != n) mr_nn_net_free(net);
    int err = *net ? MR_OK : mr_nn_net_new_for_use(r->model, n, net, e);
    *out = *net;
    return err;
}

int mr_nn_rows_predict(struct mr_nn_rows *r, const float *params, const float *x, uint64_t n,
    float *out, struct mr_error *e)
{
    uint32_t count = 0;
    for (uint64_t at = 0; at < n; at += count) {
        struct mr_nn_net *net = NULL;
        const float *y = NULL;
        count = batch_of(r, n - at);
        int err = net_of(r, count, &net, e);
        if (!err) err = mr_nn_net_predict(net, params, x + at * r->in, &y, e);
        if (err) return err;
        memcpy(out + at * r->out, y, count * r->out * sizeof *y);
    }
    return MR_OK;
}

int mr_nn_rows_score(struct mr_nn_rows *r, enum mr_nn_loss loss, const float *params,
    const float *x, struct mr_nn_labels y, uint64_t n, struct mr_nn_score *score,
    struct mr_error *e)
{
    uint32_t count = 0;
    for (uint64_t at = 0; at < n; at += count) {
        struct mr_nn_net *net = NULL;
        count = batch_of(r, n - at);
        struct mr_nn_batch b = {.x = x + at * r->in,
            .y.index = y.index ? y.index + at * r->labels : NULL,
            .y.rows = y.rows ? y.rows + at * r->out : NULL};
        int err = net_of(r, count, &net, e);
        if (!err) err = mr_nn_net_score(net, loss, params, &b, score, e);
        if (err) return err;
    }
    return MR_OK;
}
