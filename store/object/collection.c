/* Reads collections, checking one entry at a time, and builds them. */
#include "store/object/collection.h"

#include "base/assert.h"
#include "store/object/layout.h"

#include <assert.h>
#include <inttypes.h>

static_assert(sizeof(struct mr_collection_layout) == 32, "part of the layout");
static_assert(sizeof(struct mr_collection_part_layout) == 40, "part of the layout");

static size_t entry_bytes(unsigned ndim)
{
    return sizeof(struct mr_collection_part_layout) + 2 * (size_t)ndim * sizeof(uint64_t);
}

static bool is_part_kind(unsigned kind)
{
    return kind >= MR_VALUE_TENSOR && kind <= MR_VALUE_MODEL;
}

static bool is_in_data(const struct mr_value *v, uint64_t offset, uint64_t bytes)
{
    uint64_t first = (uint64_t)(v->data - v->extent);
    return offset >= first && offset - first <= v->data_bytes &&
           bytes <= v->data_bytes - (offset - first);
}

int mr_collection_open(const struct mr_value *v, struct mr_collection *out, struct mr_error *e)
{
    if (v->kind != MR_VALUE_COLLECTION)
        return mr_fail(e, MR_EINVAL, "a %s, not a collection", mr_value_kind_name(v->kind));
    struct mr_collection_layout l;
    if (v->meta_bytes < sizeof l) return mr_fail(e, MR_EFORMAT, "collection without its entries");
    memcpy(&l, v->meta, sizeof l);
    unsigned ndim = v->tensor.ndim;
    if (l.reserved || l.reserved2 || !is_part_kind(l.kind))
        return mr_fail(e, MR_EFORMAT, "collection of unknown kind %u", l.kind);
    if (l.kind == MR_VALUE_TENSOR && v->tensor.dtype == MR_DTYPE_NONE)
        return mr_fail(e, MR_EFORMAT, "collection of tensors without an element type");
    if (l.count > MR_COLLECTION_PARTS_MAX)
        return mr_fail(e, MR_EFORMAT, "collection of %" PRIu32 " parts; at most %d", l.count,
            MR_COLLECTION_PARTS_MAX);
    if (v->meta_bytes != sizeof l + l.count * entry_bytes(ndim))
        return mr_fail(e, MR_EFORMAT,
            "collection of %" PRIu32 " parts with %" PRIu64 " bytes of entries", l.count,
            v->meta_bytes);
    if (l.axis != MR_COLLECTION_GRID && l.axis >= MR_MAX(ndim, 1u))
        return mr_fail(e, MR_EFORMAT, "collection cut along axis %u of %u", l.axis, ndim);
    if ((l.divisions_offset || l.divisions_bytes) &&
        !is_in_data(v, l.divisions_offset, l.divisions_bytes))
        return mr_fail(e, MR_EFORMAT, "collection's divisions lie outside it");
    *out = (struct mr_collection){
        .kind = (enum mr_value_kind)l.kind,
        .dtype = v->tensor.dtype,
        .axis = l.axis,
        .ndim = ndim,
        .shape = v->tensor.shape,
        .count = l.count,
        .divisions = mr_str_of(v->extent + l.divisions_offset, l.divisions_bytes),
        .value = v,
    };
    return MR_OK;
}

int mr_collection_part(
    const struct mr_collection *c, uint32_t i, struct mr_collection_part *out, struct mr_error *e)
{
    if (i >= c->count)
        return mr_fail(e, MR_ERANGE, "part %" PRIu32 " of a collection of %" PRIu32, i, c->count);
    const struct mr_value *v = c->value;
    const unsigned char *at =
        v->meta + sizeof(struct mr_collection_layout) + i * entry_bytes(c->ndim);
    struct mr_collection_part_layout l;
    memcpy(&l, at, sizeof l);
    struct mr_collection_part part = {.id = {l.maker, l.number}, .nbytes = l.nbytes};
    size_t dims = c->ndim * sizeof(uint64_t);
    memcpy(part.start, at + sizeof l, dims);
    memcpy(part.shape, at + sizeof l + dims, dims);
    if (l.reserved || !is_part_kind(l.kind) ||
        (l.dtype != MR_DTYPE_NONE && !mr_dtype_is_valid(l.dtype)))
        return mr_fail(e, MR_EFORMAT, "collection's part %" PRIu32 " is of unknown kind", i);
    if (l.nbytes > MR_OBJECT_BYTES_MAX)
        return mr_fail(e, MR_EFORMAT, "collection's part %" PRIu32 " is too large", i);
    part.kind = (enum mr_value_kind)l.kind;
    part.dtype = (enum mr_dtype)l.dtype;
    for (unsigned axis = 0; axis < c->ndim; axis++)
        if (part.start[axis] > c->shape[axis] ||
            part.shape[axis] > c->shape[axis] - part.start[axis])
            return mr_fail(
                e, MR_EFORMAT, "collection's part %" PRIu32 " leaves it along axis %u", i, axis);
    if (l.inline_offset) {
        if (!l.inline_bytes || !is_in_data(v, l.inline_offset, l.inline_bytes))
            return mr_fail(e, MR_EFORMAT, "collection's part %" PRIu32 " lies outside it", i);
        part.inline_pack = mr_str_of(v->extent + l.inline_offset, l.inline_bytes);
    }
    if (mr_object_id_is_none(part.id) == (part.inline_pack.n == 0))
        return mr_fail(e, MR_EFORMAT,
            "collection's part %" PRIu32 " has not exactly one of object id and inline value", i);
    *out = part;
    return MR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool is_part_ok(const struct mr_collection_spec *s, const struct mr_collection_part *p)
{
    if (!is_part_kind(p->kind) || p->nbytes > MR_OBJECT_BYTES_MAX) return false;
    if (mr_object_id_is_none(p->id) == (p->inline_pack.n == 0)) return false;
    if (p->inline_pack.n > UINT32_MAX) return false;
    for (unsigned axis = 0; axis < s->ndim; axis++)
        if (p->start[axis] > s->shape[axis] || p->shape[axis] > s->shape[axis] - p->start[axis])
            return false;
    return true;
}

static bool is_spec_ok(const struct mr_collection_spec *s)
{
    if (!is_part_kind(s->kind) || s->ndim > MR_TENSOR_DIMS_MAX) return false;
    if ((s->kind == MR_VALUE_TENSOR) != mr_dtype_is_valid((unsigned)s->dtype)) return false;
    if (s->axis != MR_COLLECTION_GRID && s->axis >= MR_MAX(s->ndim, 1u)) return false;
    return s->count <= MR_COLLECTION_PARTS_MAX;
}

/* Sets `*f` to the sizes of a collection's extent. False: a collection like this is not allowed. */
static bool frame_of(const struct mr_collection_spec *s, struct mr_value_frame *f)
{
    if (!is_spec_ok(s)) return false;
    uint64_t data_bytes = s->divisions.n;
    for (uint32_t i = 0; i < s->count; i++) {
        if (!is_part_ok(s, &s->parts[i])) return false;
        /* Cannot overflow: at most 2^20 parts of less than 2^32 bytes. */
        data_bytes += s->parts[i].inline_pack.n;
    }
    if (data_bytes > MR_OBJECT_BYTES_MAX / 2) return false;
    *f = (struct mr_value_frame){.kind = MR_VALUE_COLLECTION,
        .dtype = s->dtype,
        .ndim = s->ndim,
        .shape = s->shape,
        .data_bytes = data_bytes};
    f->meta_offset = mr_align_up(
        mr_value_data_offset(MR_VALUE_COLLECTION, s->ndim) + data_bytes, MR_VALUE_ALIGN);
    f->meta_bytes = sizeof(struct mr_collection_layout) + s->count * entry_bytes(s->ndim);
    return true;
}

uint64_t mr_collection_bytes(const struct mr_collection_spec *s)
{
    struct mr_value_frame f;
    return frame_of(s, &f) ? f.meta_offset + f.meta_bytes : 0;
}

void mr_collection_build(void *extent, const struct mr_collection_spec *s)
{
    struct mr_value_frame f;
    bool fits = frame_of(s, &f);
    mr_assert(fits);
    mr_value_write_header(extent, &f);
    unsigned char *base = extent;
    uint64_t at = mr_value_data_offset(MR_VALUE_COLLECTION, s->ndim);
    struct mr_collection_layout l = {.count = s->count,
        .kind = (uint8_t)s->kind,
        .axis = s->axis,
        .divisions_offset = s->divisions.n ? at : 0,
        .divisions_bytes = s->divisions.n};
    if (s->divisions.n) memcpy(base + at, s->divisions.p, s->divisions.n);
    at += s->divisions.n;
    unsigned char *entry = base + f.meta_offset;
    memcpy(entry, &l, sizeof l);
    entry += sizeof l;
    size_t dims = s->ndim * sizeof(uint64_t);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct mr_collection_part *p = &s->parts[i];
        struct mr_collection_part_layout pl = {.maker = p->id.maker,
            .number = p->id.number,
            .nbytes = p->nbytes,
            .inline_offset = p->inline_pack.n ? at : 0,
            .inline_bytes = (uint32_t)p->inline_pack.n,
            .kind = (uint8_t)p->kind,
            .dtype = (uint8_t)p->dtype};
        if (p->inline_pack.n) memcpy(base + at, p->inline_pack.p, p->inline_pack.n);
        at += p->inline_pack.n;
        memcpy(entry, &pl, sizeof pl);
        memcpy(entry + sizeof pl, p->start, dims);
        memcpy(entry + sizeof pl + dims, p->shape, dims);
        entry += entry_bytes(s->ndim);
    }
    memset(base + at, 0, f.meta_offset - at);
}
