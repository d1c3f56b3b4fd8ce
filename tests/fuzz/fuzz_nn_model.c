/* JSON descriptions of a model or an optimizer; the first byte chooses which. In an accepted model
 * the parameters of all layers must follow each other without gaps. */
#include "base/alloc.h"
#include "base/assert.h"
#include "nn/model/model.h"
#include "nn/optim/optim.h"

static void model(struct mr_str json)
{
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    struct mr_error e = {0};
    if (mr_nn_model_new(json, &m, &e)) {
        mr_assert(e.code && e.text[0]);
        return;
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < m->params_count; i++) {
        const struct mr_nn_param *p = &m->params[i];
        mr_assert(p->offset == at);
        mr_assert(p->count == mr_nn_shape_count(&p->shape));
        mr_assert(p->trainable == (at < m->trainable_count));
        at += p->count;
    }
    mr_assert(at == m->count);
    mr_assert(m->count <= MR_NN_PARAMETERS_MAX);
    for (uint32_t i = 0; i < m->layers_count; i++)
        mr_assert(mr_nn_shape_count(&m->layers[i].out) <= MR_NN_ELEMENTS_MAX);
}

static void optim(struct mr_str json)
{
    struct mr_nn_optim o;
    struct mr_error e = {0};
    if (mr_nn_optim_parse(json, &o, &e)) {
        mr_assert(e.code && e.text[0]);
        return;
    }
    mr_assert(mr_nn_optim_slots(&o) <= MR_NN_SLOTS_MAX);
    const uint64_t times[] = {1, 2, 1000, UINT64_MAX};
    for (size_t i = 0; i < MR_ARRAY_LEN(times); i++)
        mr_assert(mr_nn_optim_rate(&o, times[i]) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    struct mr_str json = mr_str_of(data + 1, n - 1);
    if (data[0] == 'o')
        optim(json);
    else
        model(json);
    return 0;
}
