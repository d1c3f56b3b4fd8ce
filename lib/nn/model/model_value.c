/* Writes and reads the value of a model. Unknown keys in the meta are skipped, so that later
 * versions may add keys. */
#include "nn/model/model_value.h"

#include "base/pack.h"

#include <inttypes.h>

#define META_BYTES_MAX (MR_NN_MODEL_BYTES_MAX + 4096)

static void meta_write(const struct mr_nn_model *m, uint64_t version, struct mr_buf *b)
{
    mr_buf_init(b, META_BYTES_MAX);
    mr_pack_map(b, 2);
    mr_pack_text(b, MR_STR("model"));
    mr_pack_text(b, mr_nn_model_text(m));
    mr_pack_text(b, MR_STR("version"));
    mr_pack_uint(b, version);
}

int mr_nn_model_value_new(const struct mr_value_alloc *a, const struct mr_nn_model *m,
    uint64_t version, float **params_out, struct mr_error *e)
{
    MR_AUTO(mr_buf_fini) struct mr_buf meta;
    meta_write(m, version, &meta);
    int err = mr_buf_status(&meta);
    if (err) return mr_fail(e, err, "model: its text is too long for a value");
    uint64_t bytes = mr_value_model_size(m->count, mr_buf_str(&meta));
    void *extent = a->alloc(a->ctx, bytes);
    if (!extent) return mr_fail(e, MR_ELIMIT, "no room for a model of %" PRIu64 " bytes", bytes);
    *params_out = mr_value_model_build(extent, m->count, mr_buf_str(&meta));
    return MR_OK;
}

static int damaged(struct mr_error *e)
{
    return mr_fail(e, MR_EFORMAT,
        "model value: its descriptor is no map with \"model\" and "
        "\"version\"");
}

/* Reads one pair of the map. False: the pair is malformed. */
static bool read_pair(struct mr_pack_reader *r, struct mr_nn_model_view *out, unsigned *seen)
{
    struct mr_pack_item key, item;
    if (mr_pack_next(r, &key) || key.type != MR_PACK_TEXT) return false;
    bool text = mr_str_eq(key.bytes, MR_STR("model"));
    bool version = mr_str_eq(key.bytes, MR_STR("version"));
    if (!text && !version) return !mr_pack_skip(r, NULL);
    if (mr_pack_next(r, &item)) return false;
    *seen |= text ? 1u : 2u;
    if (text) {
        out->text = item.bytes;
        return item.type == MR_PACK_TEXT;
    }
    out->version = item.u; /* `u` and `i` share their bits, so a signed integer is read correctly */
    return item.type == MR_PACK_UINT || (item.type == MR_PACK_INT && item.i >= 0);
}

int mr_nn_model_value_view(
    const struct mr_value *v, struct mr_nn_model_view *out, struct mr_error *e)
{
    if (v->kind != MR_VALUE_MODEL)
        return mr_fail(e, MR_EINVAL, "a %s, but a model is needed", mr_value_kind_name(v->kind));
    struct mr_pack_reader r = mr_pack_read(mr_str_of(v->meta, v->meta_bytes));
    struct mr_pack_item map;
    if (mr_pack_next(&r, &map) || map.type != MR_PACK_MAP) return damaged(e);
    struct mr_nn_model_view view = {
        .params = (const float *)(const void *)v->data, .count = v->data_bytes / sizeof(float)};
    unsigned seen = 0;
    for (uint32_t i = 0; i < map.count; i++)
        if (!read_pair(&r, &view, &seen)) return damaged(e);
    if (seen != 3 || !mr_pack_at_end(&r)) return damaged(e);
    if (view.text.n > MR_NN_MODEL_BYTES_MAX) return damaged(e);
    *out = view;
    return MR_OK;
}

int mr_nn_model_value_open(const struct mr_value *v, struct mr_nn_model_view *out,
    struct mr_nn_model **model_out, struct mr_error *e)
{
    struct mr_nn_model_view view;
    int err = mr_nn_model_value_view(v, &view, e);
    if (err) return err;
    MR_AUTO(mr_nn_model_free) struct mr_nn_model *m = NULL;
    err = mr_nn_model_new(view.text, &m, e);
    if (err) return err;
    if (m->count != view.count)
        return mr_fail(e, MR_EFORMAT,
            "model value of %" PRIu64 " parameters, but the model it describes has %" PRIu64,
            view.count, m->count);
    *out = view;
    *model_out = MR_STEAL(m);
    return MR_OK;
}
