/* Dense: y = x W + b over the last axis. Forward and backward passes are three matrix products of
 * oneDNN. */
#include "nn/net/internal.h"

#include <string.h>

/* How many numbers of a gradient are reported at a time (mr_nn_net_follow). Other threads start on
 * them while this thread computes the rest. */
#define PART 524288

struct sizes {
    dnnl_dim_t rows, in, out;
};

static struct sizes sizes_of(const struct mr_nn_net *n, const struct mr_nn_unit *u)
{
    const struct mr_nn_shape *in = &u->layer->in, *out = &u->layer->out;
    uint32_t columns = in->dims[in->rank - 1];
    return (struct sizes){(dnnl_dim_t)(n->batch * mr_nn_shape_count(in) / columns), columns,
        out->dims[out->rank - 1]};
}

static int forward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    struct sizes s = sizes_of(n, u);
    const float *b = u->w + s.in * s.out;
    for (dnnl_dim_t i = 0; u->layer->bias && i < s.rows; i++)
        memcpy(u->y + i * s.out, b, (size_t)s.out * sizeof(float));
    float keep = u->layer->bias ? 1.0f : 0.0f;
    return (int)dnnl_sgemm(
        'N', 'N', s.rows, s.out, s.in, 1, u->x, s.in, u->w, s.out, keep, u->y, s.out);
}

static int backward(struct mr_nn_net *n, struct mr_nn_unit *u)
{
    struct sizes s = sizes_of(n, u);
    dnnl_dim_t end = s.in * s.out;
    if (u->layer->bias) {
        float *db = u->dw + end;
        memset(db, 0, (size_t)s.out * sizeof *db);
        for (dnnl_dim_t i = 0; i < s.rows; i++)
            for (dnnl_dim_t k = 0; k < s.out; k++)
                db[k] += u->dy[i * s.out + k];
        end += s.out;
    }
    dnnl_dim_t block = (PART + s.out - 1) / s.out;
    for (dnnl_dim_t top = s.in; top > 0;) {
        dnnl_dim_t low = top > block + block / 2 ? top - block : 0;
        int status = (int)dnnl_sgemm('T', 'N', top - low, s.out, s.rows, 1, u->x + low, s.in, u->dy,
            s.out, 0, u->dw + low * s.out, s.out);
        if (status) return status;
        mr_nn__grads_ready_part(n, u, (uint64_t)(low * s.out), (uint64_t)(end - low * s.out));
        end = low * s.out;
        top = low;
    }
    if (!u->dx) return 0;
    return (int)dnnl_sgemm(
        'N', 'T', s.rows, s.in, s.out, 1, u->dy, s.out, u->w, s.out, 0, u->dx, s.in);
}

const struct mr_nn_kind_ops mr_nn__dense = {.forward = forward, .backward = backward};

/* The layers Flatten and Reshape, which change only the shape. */
const struct mr_nn_kind_ops mr_nn__alias = {.alias = true};
