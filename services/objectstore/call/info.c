/* Describes objects. Of a value only the head and the shape are read. */
#include "services/objectstore/call/info.h"

#include "host/clock.h"
#include "store/object/value.h"
#include "store/object/value_text.h"

#include <stdio.h>
#include <string.h>

/* Describes the value in `bytes`: sets kind, summary, drawn, dtype and shape of `out`. Sets nothing
 * if `bytes` is no value. */
static void describe(
    struct mr_ostore_call *call, struct mr_str bytes, Millrace__V1__ObjectInfo *out)
{
    struct mr_value v;
    if (mr_value_check(bytes, &v, NULL)) return;
    char summary[MR_VALUE_SUMMARY_MAX];
    mr_value_summary(&v, summary);
    out->kind = mr_ostore_call_text(call, mr_str(mr_value_kind_name(v.kind)));
    out->summary = mr_ostore_call_text(call, mr_str(summary));
    out->drawn = v.is_drawn;
    if (v.kind == MR_VALUE_TENSOR)
        out->dtype = mr_ostore_call_text(call, mr_str(mr_dtype_name(v.tensor.dtype)));
    if (v.kind != MR_VALUE_TENSOR && v.kind != MR_VALUE_COLLECTION) return;
    out->n_shape = v.tensor.ndim;
    out->shape = mr_ostore_call_take(call, v.tensor.ndim * sizeof *out->shape + 1);
    if (v.tensor.ndim) memcpy(out->shape, v.tensor.shape, v.tensor.ndim * sizeof *out->shape);
}

static void describe_from_memory(
    struct mr_ostore_call *call, const struct mr_ostore_info *info, Millrace__V1__ObjectInfo *out)
{
    struct mr_store_view view;
    if (!info->in_memory || mr_store_get(call->sv->self, info->id, NULL, 0, &view, NULL)) return;
    describe(call, mr_str_of(view.p, view.bytes), out);
    mr_store_release(call->sv->self, &view);
}

static void show_holders(
    struct mr_ostore_call *call, const struct mr_ostore_info *info, Millrace__V1__ObjectInfo *out)
{
    size_t n = MR_MIN(info->holders_count, (uint32_t)MR_OSTORE_HOLDERS_SHOWN);
    out->holders = mr_ostore_call_take(call, (n + 1) * sizeof *out->holders);
    out->names = mr_ostore_call_take(call, (n + 1) * sizeof *out->names);
    for (size_t i = 0; i < n; i++) {
        char text[MR_KEY_BYTES_MAX + 16];
        struct mr_store_holder h = info->holders[i];
        mr_ostore_shell_holder_text(h, text, sizeof text);
        const char *name = h.kind == MR_HOLD_NAME ? mr_names_by_key(call->sv->names, h.key) : NULL;
        if (name) {
            out->names[out->n_names++] = mr_ostore_call_text(call, mr_str(name));
            snprintf(text, sizeof text, "name %s", name);
        }
        out->holders[out->n_holders++] = mr_ostore_call_text(call, mr_str(text));
    }
}

Millrace__V1__ObjectInfo *mr_ostore_call_info(
    struct mr_ostore_call *call, const struct mr_ostore_info *info)
{
    Millrace__V1__ObjectInfo *out = mr_ostore_call_take(call, sizeof *out);
    millrace__v1__object_info__init(out);
    char id[MR_OBJECT_ID_TEXT_MAX];
    mr_object_id_format(info->id, id);
    out->id = mr_ostore_call_text(call, mr_str(id));
    out->nbytes = info->bytes;
    const char *state = info->persisted ? (info->in_memory ? "persisted" : "disk")
                                        : (info->in_memory ? "memory" : "spilled");
    out->state = mr_ostore_call_text(call, mr_str(state));
    out->durable = info->persisted;
    out->pins = info->pins;
    out->node = mr_ostore_call_text(call, mr_str(call->sv->config.node));
    out->created_ns = mr_clock_wall() - (mr_clock_now() - info->created);
    show_holders(call, info, out);
    describe_from_memory(call, info, out);
    return out;
}
