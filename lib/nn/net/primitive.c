/* oneDNN's objects in the form that layers use: a primitive with bound arguments. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "nn/net/internal.h"

void mr_nn__desc_free(dnnl_primitive_desc_t *pd)
{
    if (*pd) (void)dnnl_primitive_desc_destroy(*pd);
    *pd = NULL;
}

void mr_nn__primitive_fini(struct mr_nn_primitive *p)
{
    for (int i = 0; i < p->count; i++)
        (void)dnnl_memory_destroy(p->args[i].memory);
    if (p->p) (void)dnnl_primitive_destroy(p->p);
    *p = (struct mr_nn_primitive){0};
}

static int refused(const char *what, dnnl_status_t status, struct mr_error *e)
{
    return mr_fail(e, MR_EINTERNAL, "nn: oneDNN makes no %s: status %d", what, (int)status);
}

int mr_nn__describe(struct mr_nn_net *n, const void *op, const_dnnl_primitive_desc_t hint,
    dnnl_primitive_desc_t *pd, struct mr_error *e)
{
    dnnl_status_t status = dnnl_primitive_desc_create(pd, op, n->attr, n->engine, hint);
    return status ? refused("primitive of this shape", status, e) : MR_OK;
}

int mr_nn__make(struct mr_nn_net *n, const_dnnl_primitive_desc_t pd, struct mr_nn_primitive *p,
    struct mr_error *e)
{
    dnnl_status_t status = dnnl_primitive_create(&p->p, pd);
    if (status) return refused("primitive", status, e);
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    n->scratch_bytes = MR_MAX(n->scratch_bytes, dnnl_memory_desc_get_size(md));
    return mr_nn__bind(n, p, DNNL_ARG_SCRATCHPAD, md, NULL);
}

/* Drops const, because oneDNN's interface has none. oneDNN does not write to a source. */
static void *writable(const void *p)
{
    return mr_unconst(p);
}

int mr_nn__bind(struct mr_nn_net *n, struct mr_nn_primitive *p, int arg,
    const dnnl_memory_desc_t *md, const void *handle)
{
    mr_assert(p->count < MR_NN_ARGS_MAX);
    dnnl_exec_arg_t *a = &p->args[p->count];
    dnnl_status_t status =
        dnnl_memory_create(&a->memory, md, n->engine, handle ? writable(handle) : DNNL_MEMORY_NONE);
    if (status) return MR_EINTERNAL;
    a->arg = arg;
    p->count++;
    return MR_OK;
}

void mr_nn__point(struct mr_nn_primitive *p, int arg, const void *handle)
{
    for (int i = 0; i < p->count; i++)
        if (p->args[i].arg == arg)
            (void)dnnl_memory_set_data_handle(p->args[i].memory, writable(handle));
}

int mr_nn__run(struct mr_nn_net *n, struct mr_nn_primitive *p)
{
    return (int)dnnl_primitive_execute(p->p, n->stream, p->count, p->args);
}

dnnl_memory_desc_t mr_nn__rows(uint64_t rows, uint64_t columns)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&md, 2, dims, dnnl_f32, dnnl_ab);
    mr_assert(!status);
    return md;
}

dnnl_memory_desc_t mr_nn__image(const struct mr_nn_net *n, const struct mr_nn_shape *s)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {n->batch, s->dims[2], s->dims[0], s->dims[1]};
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&md, 4, dims, dnnl_f32, dnnl_nhwc);
    mr_assert(!status);
    return md;
}
