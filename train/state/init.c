/* Loads a range of the model's vector of parameters from checkpoints, models and random parameters:
 * of each, the part that falls into the range. */
#include "train/state/init.h"

#include "base/alloc.h"
#include "nn/model/model_value.h"
#include "store/object/value.h"
#include "train/state/checkpoint.h"

#include <stdio.h>

void mr_role_state_fini(struct mr_role_state *s)
{
    mr_release(s->params);
    for (uint32_t i = 0; i < MR_NN_SLOTS_MAX; i++)
        mr_release(s->slots[i]);
    *s = (struct mr_role_state){0};
}

/* The part that two ranges of the vector have in common: `n` numbers, at `at` in the first range
 * and at `from` in the second. */
struct overlap {
    uint64_t at, from, n;
};

static struct overlap overlap_of(uint64_t first, uint64_t count, uint64_t from, uint64_t n)
{
    uint64_t low = MR_MAX(first, from), high = MR_MIN(first + count, from + n);
    if (low >= high) return (struct overlap){0};
    return (struct overlap){low - first, low - from, high - low};
}

/* Checks the head of an object of a checkpoint: the object must fit this model and optimizer, and
 * begin with parameter `from` of the model. */
static int head_check(const struct mr_role *r, const struct mr_checkpoint_head *h, uint64_t from,
    uint64_t rows, struct mr_error *e)
{
    const struct mr_role_plan *p = &r->plan;
    uint32_t slots = mr_nn_optim_slots(&p->optim);
    if (h->model_count != p->model->count)
        return mr_fail(e, MR_EINVAL,
            "it is of a model of %llu parameters, the model of this session has %llu",
            (unsigned long long)h->model_count, (unsigned long long)p->model->count);
    if (h->optim != p->optim.type || h->slots != slots || rows != 1 + (uint64_t)slots)
        return mr_fail(e, MR_EINVAL,
            "it is of %s with %u numbers remembered of each parameter, the optimizer of this "
            "session is %s with %u",
            mr_nn_optim_name(h->optim), h->slots, mr_nn_optim_name(p->optim.type), slots);
    if (h->first != from)
        return mr_fail(e, MR_EINVAL,
            "it begins at parameter %llu, and %llu was expected: all shards, in their order",
            (unsigned long long)h->first, (unsigned long long)from);
    return MR_OK;
}

/* Reads one object of a checkpoint. The object's numbers must start at number `from` of the vector.
 * Sets `*n` to how many numbers of the vector the object has. */
static int piece_take(struct mr_role *r, const struct mr_store_view *view, uint64_t from,
    uint64_t first, uint64_t count, struct mr_role_state *s, uint64_t *n, struct mr_error *e)
{
    struct mr_value v;
    struct mr_checkpoint_head head;
    int err = mr_value_check(mr_str_of(view->p, view->bytes), &v, e);
    if (err) return err;
    uint32_t slots = mr_nn_optim_slots(&r->plan.optim);
    const struct mr_tensor *t = &v.tensor;
    if (v.kind != MR_VALUE_TENSOR || t->dtype != MR_DTYPE_F32 || t->ndim != 2 || !t->shape[0] ||
        !mr_tensor_is_contiguous(t) || t->shape[1] < MR_CHECKPOINT_HEAD_WORDS ||
        !mr_checkpoint_head_read(
            (const float *)t->data + t->shape[1] - MR_CHECKPOINT_HEAD_WORDS, &head))
        return mr_fail(e, MR_EFORMAT,
            "the object is no checkpoint: expected f32[1 + slots, count "
            "+ 16] as a training session cuts it");
    err = head_check(r, &head, from, t->shape[0], e);
    if (err) return err;
    if (from && head.version != s->version)
        return mr_fail(e, MR_EINVAL, "it is of version %llu, the one before it of %llu",
            (unsigned long long)head.version, (unsigned long long)s->version);
    s->version = head.version;
    uint64_t width = t->shape[1];
    *n = width - MR_CHECKPOINT_HEAD_WORDS;
    s->has_slots = true;
    struct overlap o = overlap_of(first, count, from, *n);
    if (!o.n) return MR_OK;
    const float *rows = t->data;
    memcpy(s->params + o.at, rows + o.from, o.n * sizeof(float));
    for (uint32_t i = 0; i < slots; i++)
        memcpy(s->slots[i] + o.at, rows + (i + 1) * width + o.from, o.n * sizeof(float));
    return MR_OK;
}

/* Loads numbers from the objects of a checkpoint. `is_given`: the document names the checkpoint.
 * Then an object that no store has is an error of the document, and a retry does not help. */
static int checkpoint_load(struct mr_role *r, char *const *objects, size_t objects_count,
    bool is_given, uint64_t first, uint64_t count, struct mr_role_state *s, struct mr_error *e)
{
    uint64_t from = 0;
    for (size_t i = 0; i < objects_count; i++) {
        struct mr_role_named at;
        struct mr_store_view view = {0};
        uint64_t n = 0;
        struct mr_error why;
        int err = mr_role_find(&r->store, objects[i], &at, &why);
        if (!err)
            err = mr_role_get(&r->store, at.id, at.address[0] ? at.address : NULL, &view, &why);
        if (!err) err = piece_take(r, &view, from, first, count, s, &n, &why);
        mr_store_release(r->env->store, &view);
        if (err == MR_ETIMEOUT && is_given) err = MR_ENOENT;
        if (err)
            return mr_fail(
                e, err, "%scheckpoint %s: %s", is_given ? "init." : "", objects[i], why.text);
        from += n;
    }
    uint64_t model = r->plan.model->count;
    if (from != model && from != model + MR_RING_WORDS)
        return mr_fail(e, MR_EINVAL, "the checkpoint has %llu parameters, the model %llu",
            (unsigned long long)from, (unsigned long long)model);
    return MR_OK;
}

static int model_load(
    struct mr_role *r, uint64_t first, uint64_t count, struct mr_role_state *s, struct mr_error *e)
{
    const struct mr_role_plan *p = &r->plan;
    struct mr_role_named at;
    struct mr_store_view view = {0};
    struct mr_value v;
    struct mr_nn_model_view m;
    struct mr_error why;
    int err = mr_role_find(&r->store, p->init_model, &at, &why);
    if (!err) err = mr_role_get(&r->store, at.id, at.address[0] ? at.address : NULL, &view, &why);
    if (!err) err = mr_value_check(mr_str_of(view.p, view.bytes), &v, &why);
    if (!err) err = mr_nn_model_value_view(&v, &m, &why);
    if (!err && m.count != p->model->count)
        err = mr_fail(&why, MR_EINVAL, "it has %llu parameters, the model of this session %llu",
            (unsigned long long)m.count, (unsigned long long)p->model->count);
    if (!err) {
        struct overlap o = overlap_of(first, count, 0, m.count);
        memcpy(s->params + o.at, m.params + o.from, o.n * sizeof(float));
    }
    mr_store_release(r->env->store, &view);
    return err ? mr_fail(e, err, "init.model \"%s\": %s", p->init_model, why.text) : MR_OK;
}

static void seed_load(struct mr_role *r, uint64_t first, uint64_t count, struct mr_role_state *s)
{
    const struct mr_nn_model *m = r->plan.model;
    float *all = mr_alloc_array(m->count, sizeof *all);
    mr_nn_model_init(m, r->plan.init_seed, all);
    struct overlap o = overlap_of(first, count, 0, m->count);
    memcpy(s->params + o.at, all + o.from, o.n * sizeof(float));
    mr_release(all);
}

int mr_role_state_load(
    struct mr_role *r, uint64_t first, uint64_t count, struct mr_role_state *s, struct mr_error *e)
{
    return mr_role_state_load_from(r, r->members->m->checkpoint, first, count, s, e);
}

int mr_role_state_load_from(struct mr_role *r, const Millrace__V1__TrainingCheckpoint *c,
    uint64_t first, uint64_t count, struct mr_role_state *s, struct mr_error *e)
{
    const struct mr_role_plan *p = &r->plan;
    *s = (struct mr_role_state){.params = mr_alloc_array(count + 1, sizeof(float))};
    for (uint32_t i = 0; i < mr_nn_optim_slots(&p->optim); i++)
        s->slots[i] = mr_alloc_array(count + 1, sizeof(float));
    int err = MR_OK;
    if (c && c->n_objects) {
        err = checkpoint_load(r, c->objects, c->n_objects, false, first, count, s, e);
    } else if (p->init_checkpoint_count) {
        err = checkpoint_load(
            r, p->init_checkpoint, p->init_checkpoint_count, true, first, count, s, e);
    } else if (p->init_model) {
        err = model_load(r, first, count, s, e);
    } else {
        seed_load(r, first, count, s);
    }
    if (err) mr_role_state_fini(s);
    return err;
}
