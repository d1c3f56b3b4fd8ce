/* Describes values for people. */
#include "store/object/value_text.h"

#include "base/units.h"
#include "base/utf8.h"
#include "store/object/collection.h"
#include "store/object/table.h"

#include <inttypes.h>
#include <stdio.h>

/* This many bytes at the beginning of a text are shown. */
#define PREVIEW_BYTES 40

static void pack_summary(struct mr_str pack, char *out, size_t n)
{
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item;
    if (mr_pack_next(&r, &item)) {
        (void)snprintf(out, n, "json (malformed)");
        return;
    }
    char text[4 * PREVIEW_BYTES + 1];
    switch (item.type) {
    case MR_PACK_NIL: (void)snprintf(out, n, "null"); return;
    case MR_PACK_BOOL: (void)snprintf(out, n, "bool %s", item.boolean ? "true" : "false"); return;
    case MR_PACK_INT: (void)snprintf(out, n, "int %" PRId64, item.i); return;
    case MR_PACK_UINT: (void)snprintf(out, n, "int %" PRIu64, item.u); return;
    case MR_PACK_FLOAT: (void)snprintf(out, n, "float %.17g", item.f); return;
    case MR_PACK_TEXT:
        mr_utf8_printable(item.bytes.p, MR_MIN(item.bytes.n, PREVIEW_BYTES), text, sizeof text);
        (void)snprintf(out, n, "text \"%s\"%s", text, item.bytes.n > PREVIEW_BYTES ? "…" : "");
        return;
    case MR_PACK_BYTES: (void)snprintf(out, n, "bytes[%zu]", item.bytes.n); return;
    case MR_PACK_LIST: (void)snprintf(out, n, "list[%" PRIu32 "]", item.count); return;
    case MR_PACK_MAP: (void)snprintf(out, n, "map[%" PRIu32 "]", item.count); return;
    case MR_PACK_EXT: (void)snprintf(out, n, "extension %d", item.ext); return;
    }
}

/* Writes the kind and the shape of a value. The caller adds the size in bytes. */
static void what(const struct mr_value *v, char *out, size_t n)
{
    char shape[MR_TENSOR_TEXT_MAX];
    switch (v->kind) {
    case MR_VALUE_TENSOR:
        mr_tensor_text(v->tensor.dtype, v->tensor.ndim, v->tensor.shape, shape);
        (void)snprintf(out, n, "%s", shape);
        return;
    case MR_VALUE_TABLE:
        (void)snprintf(out, n, "table[%" PRIu64 " rows, %" PRIu64 " columns]", v->tensor.shape[0],
            v->tensor.shape[1]);
        return;
    case MR_VALUE_PACK: pack_summary(mr_str_of(v->data, v->data_bytes), out, n); return;
    case MR_VALUE_COLLECTION: {
        struct mr_collection c;
        if (mr_collection_open(v, &c, NULL)) break;
        if (c.kind == MR_VALUE_TENSOR)
            mr_tensor_text(c.dtype, c.ndim, c.shape, shape);
        else if (c.kind == MR_VALUE_TABLE && c.ndim == 2)
            (void)snprintf(shape, sizeof shape, "table[%" PRIu64 " rows, %" PRIu64 " columns]",
                c.shape[0], c.shape[1]);
        else
            (void)snprintf(shape, sizeof shape, "%s", mr_value_kind_name(c.kind));
        (void)snprintf(out, n, "collection of %s in %" PRIu32 " parts", shape, c.count);
        return;
    }
    case MR_VALUE_MODEL:
        (void)snprintf(out, n, "model of %" PRIu64 " parameters", v->tensor.shape[0]);
        return;
    case MR_VALUE_BYTES:
    case MR_VALUE_NONE: break;
    }
    (void)snprintf(out, n, "%s", mr_value_kind_name(v->kind));
}

/* Returns the bytes of a value's data; for a collection, those of all its parts. */
static uint64_t data_bytes_of(const struct mr_value *v)
{
    struct mr_collection c;
    uint64_t sum = 0;
    if (v->kind == MR_VALUE_PACK || v->kind == MR_VALUE_BYTES) return v->data_bytes;
    if (v->kind != MR_VALUE_COLLECTION || mr_collection_open(v, &c, NULL)) return v->nbytes;
    for (uint32_t i = 0; i < c.count; i++) {
        struct mr_collection_part p;
        if (mr_collection_part(&c, i, &p, NULL) || __builtin_add_overflow(sum, p.nbytes, &sum))
            return v->nbytes;
    }
    return sum;
}

void mr_value_summary(const struct mr_value *v, char out[MR_VALUE_SUMMARY_MAX])
{
    char kind[MR_TENSOR_TEXT_MAX + 40];
    what(v, kind, sizeof kind);
    struct mr_pack_reader r = mr_pack_read(mr_str_of(v->data, v->data_bytes));
    struct mr_pack_item item;
    bool scalar = v->kind == MR_VALUE_PACK && !mr_pack_next(&r, &item) && item.type < MR_PACK_TEXT;
    char size[MR_BYTES_TEXT_MAX];
    mr_bytes_text(data_bytes_of(v), size);
    (void)snprintf(out, MR_VALUE_SUMMARY_MAX, "%s%s%s%s", kind, scalar ? "" : " ",
        scalar ? "" : size, v->is_drawn ? ", of drawn data" : "");
}
