/* Reads the header of an extent as untrusted bytes, and writes it. table.c, collection.c and
 * base/pack.c read what follows the header. Each number is copied out of the extent before it is
 * checked, because another process may still be able to write the memory. */
#include "store/object/value.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "store/object/collection.h"
#include "store/object/layout.h"
#include "store/object/table.h"

#include <assert.h>
#include <inttypes.h>
#include <xxhash.h>

static_assert(sizeof(struct mr_value_header) == 64, "the header is part of the layout");
static_assert(MR_VALUE_HEADER_BYTES_MAX <= UINT16_MAX, "header_bytes is 16 bits");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are little endian in memory");

/* The header, the shape and the strides, as they stand in the extent. */
struct raw_header {
    struct mr_value_header h;
    uint64_t dims[2 * MR_TENSOR_DIMS_MAX];
};

static_assert(sizeof(struct raw_header) == MR_VALUE_HEADER_BYTES_MAX, "no gap");

/* Returns the checksum of the header, computed with its field `checksum` set to 0. */
static uint64_t header_checksum(struct raw_header *raw)
{
    raw->h.checksum = 0;
    return XXH3_64bits(raw, raw->h.header_bytes);
}

static size_t header_bytes_of(enum mr_value_kind kind, unsigned ndim)
{
    size_t words = kind == MR_VALUE_TENSOR ? 2 * (size_t)ndim : ndim;
    return sizeof(struct mr_value_header) + words * sizeof(uint64_t);
}

const char *mr_value_kind_name(enum mr_value_kind kind)
{
    switch (kind) {
    case MR_VALUE_TENSOR: return "tensor";
    case MR_VALUE_TABLE: return "table";
    case MR_VALUE_PACK: return "json";
    case MR_VALUE_BYTES: return "bytes";
    case MR_VALUE_MODEL: return "model";
    case MR_VALUE_COLLECTION: return "collection";
    case MR_VALUE_NONE: break;
    }
    return "none";
}

/* ---- reading --------------------------------------------------------------------------------- */

static int check_identity(const struct raw_header *raw, size_t n, struct mr_error *e)
{
    const struct mr_value_header *h = &raw->h;
    if (h->magic != MR_VALUE_MAGIC)
        return mr_fail(
            e, MR_EFORMAT, "not a value: it starts with 0x%08" PRIx32 ", not \"MRV1\"", h->magic);
    if (h->layout_version != MR_LAYOUT_VERSION)
        return mr_fail(e, MR_ESTATE, "a value of layout version %u; this program speaks %d",
            h->layout_version, MR_LAYOUT_VERSION);
    if (h->kind < MR_VALUE_TENSOR || h->kind > MR_VALUE_COLLECTION)
        return mr_fail(e, MR_EFORMAT, "value of unknown kind %u", h->kind);
    if (h->ndim > MR_TENSOR_DIMS_MAX)
        return mr_fail(e, MR_EFORMAT, "value of %u axes; at most %d", h->ndim, MR_TENSOR_DIMS_MAX);
    if (h->header_bytes != header_bytes_of((enum mr_value_kind)h->kind, h->ndim))
        return mr_fail(e, MR_EFORMAT, "value header of %u bytes does not fit its %u axes",
            h->header_bytes, h->ndim);
    if (h->header_bytes > n)
        return mr_fail(
            e, MR_EFORMAT, "value cut off: %zu bytes, the header takes %u", n, h->header_bytes);
    return MR_OK;
}

static int check_region(const struct mr_value_header *h, uint64_t offset, uint64_t bytes,
    const char *what, struct mr_error *e)
{
    if (offset % MR_VALUE_ALIGN || offset < h->header_bytes || offset > h->nbytes ||
        bytes > h->nbytes - offset)
        return mr_fail(e, MR_EFORMAT,
            "value's %s, %" PRIu64 " bytes at %" PRIu64 ", is not inside its %" PRIu64 " bytes",
            what, bytes, offset, h->nbytes);
    return MR_OK;
}

static int check_extent(struct raw_header *raw, size_t n, struct mr_error *e)
{
    const struct mr_value_header *h = &raw->h;
    uint64_t checksum = h->checksum;
    if (checksum != header_checksum(raw))
        return mr_fail(e, MR_EFORMAT, "value header is damaged: its checksum does not agree");
    if (h->reserved || h->flags & ~(uint32_t)MR_VALUE_DRAWN)
        return mr_fail(e, MR_EFORMAT, "value header uses reserved fields");
    if (h->nbytes > n || h->nbytes > MR_OBJECT_BYTES_MAX)
        return mr_fail(e, MR_EFORMAT,
            "value cut off: its header says %" PRIu64 " bytes, there are %zu", h->nbytes, n);
    if (h->data_offset != mr_align_up(h->header_bytes, MR_VALUE_ALIGN))
        return mr_fail(e, MR_EFORMAT, "value's data does not follow its header");
    int err = check_region(h, h->data_offset, h->data_bytes, "data", e);
    if (err) return err;
    uint64_t end = h->data_offset + h->data_bytes;
    if (h->meta_offset && !h->meta_bytes)
        return mr_fail(e, MR_EFORMAT, "value with a place for meta, but no bytes of it");
    if (h->meta_bytes) {
        err = check_region(h, h->meta_offset, h->meta_bytes, "meta", e);
        if (err) return err;
        end = MR_MAX(end, h->meta_offset + h->meta_bytes);
    }
    if (end != h->nbytes)
        return mr_fail(e, MR_EFORMAT, "value of %" PRIu64 " bytes, but its parts end at %" PRIu64,
            h->nbytes, end);
    return MR_OK;
}

/* Checks that no stride leads out of the data, and that the data has as many bytes as the elements.
 * So a small extent cannot claim a large tensor whose elements overlap. Strides that are never used
 * get their row-major values, so that readers may add them without a check. */
static int check_strides(struct mr_tensor *t, uint64_t data_bytes, struct mr_error *e)
{
    uint64_t width = mr_dtype_bytes(t->dtype);
    uint64_t bytes = mr_tensor_data_bytes(t);
    if (bytes > data_bytes)
        return mr_fail(e, MR_EFORMAT, "tensor of %" PRIu64 " bytes in %" PRIu64 " bytes of data",
            bytes, data_bytes);
    int64_t usual[MR_TENSOR_DIMS_MAX];
    mr_tensor_strides(t->dtype, t->ndim, t->shape, usual);
    uint64_t last = 0; /* offset of the last element */
    for (unsigned axis = 0; axis < t->ndim; axis++) {
        if (t->strides[axis] < 0 || (uint64_t)t->strides[axis] % width)
            return mr_fail(e, MR_EFORMAT,
                "tensor's stride %" PRId64 " along axis %u is not a multiple of %" PRIu64,
                t->strides[axis], axis, width);
        if (!bytes || t->shape[axis] == 1) t->strides[axis] = usual[axis];
        if (!bytes) continue;
        uint64_t reach = 0;
        if (__builtin_mul_overflow((uint64_t)t->strides[axis], t->shape[axis] - 1, &reach) ||
            __builtin_add_overflow(last, reach, &last) || last > data_bytes - width)
            return mr_fail(
                e, MR_EFORMAT, "tensor's stride along axis %u leads out of its data", axis);
    }
    return MR_OK;
}

static int check_tensor(const struct raw_header *raw, struct mr_value *v, struct mr_error *e)
{
    const struct mr_value_header *h = &raw->h;
    if (!mr_dtype_is_valid(h->dtype))
        return mr_fail(e, MR_EFORMAT, "tensor of unknown element type %u", h->dtype);
    int err = mr_tensor_shape_check(v->tensor.dtype, h->ndim, v->tensor.shape, NULL, NULL, e);
    if (err) return err;
    for (unsigned axis = 0; axis < h->ndim; axis++)
        v->tensor.strides[axis] = (int64_t)raw->dims[h->ndim + axis];
    if (h->meta_bytes) return mr_fail(e, MR_EFORMAT, "tensor with meta bytes");
    return check_strides(&v->tensor, v->data_bytes, e);
}

static int check_table(const struct mr_value *v, struct mr_error *e)
{
    struct mr_table t;
    int err = mr_table_open(v, &t, e);
    for (uint32_t i = 0; !err && i < t.columns_count; i++) {
        struct mr_column c;
        err = mr_table_column(&t, i, &c, e);
    }
    return err;
}

static int check_collection(const struct mr_value *v, struct mr_error *e)
{
    struct mr_collection c;
    int err = mr_collection_open(v, &c, e);
    for (uint32_t i = 0; !err && i < c.count; i++) {
        struct mr_collection_part part;
        err = mr_collection_part(&c, i, &part, e);
    }
    return err;
}

/* Refuses a pack that itself contains a whole extent. Such a pack would be one value inline and
 * another value in a store. */
static int check_pack(const struct mr_value *v, struct mr_error *e)
{
    struct mr_pack_reader r = mr_pack_read(mr_str_of(v->data, v->data_bytes));
    struct mr_pack_item item;
    if (mr_pack_next(&r, &item)) return mr_fail(e, MR_EFORMAT, "json value that is no pack");
    if (item.type == MR_PACK_EXT && item.ext == MR_PACK_EXT_VALUE)
        return mr_fail(e, MR_EFORMAT, "json value that is a whole value inside");
    return MR_OK;
}

/* Checks the header of a model's value. Only lib/nn knows the model inside. */
static int check_model(const struct raw_header *raw, const struct mr_value *v, struct mr_error *e)
{
    const struct mr_value_header *h = &raw->h;
    if (h->ndim != 1 || h->dtype != MR_DTYPE_F32)
        return mr_fail(e, MR_EFORMAT, "model value that is no f32 of one axis");
    if (v->tensor.shape[0] > MR_OBJECT_BYTES_MAX / sizeof(float) ||
        v->tensor.shape[0] * sizeof(float) != h->data_bytes)
        return mr_fail(e, MR_EFORMAT, "model of %" PRIu64 " parameters in %" PRIu64 " bytes",
            v->tensor.shape[0], h->data_bytes);
    if (!h->meta_bytes) return mr_fail(e, MR_EFORMAT, "model value that does not say what it is");
    return MR_OK;
}

static int check_kind(const struct raw_header *raw, struct mr_value *v, struct mr_error *e)
{
    bool plain = !raw->h.ndim && !raw->h.dtype && !raw->h.meta_bytes;
    switch (v->kind) {
    case MR_VALUE_TENSOR: return check_tensor(raw, v, e);
    case MR_VALUE_TABLE: return check_table(v, e);
    case MR_VALUE_COLLECTION: return check_collection(v, e);
    case MR_VALUE_PACK:
        if (plain) return check_pack(v, e);
        break;
    case MR_VALUE_MODEL: return check_model(raw, v, e);
    case MR_VALUE_BYTES:
    case MR_VALUE_NONE: break;
    }
    if (!plain) return mr_fail(e, MR_EFORMAT, "%s value with a shape", mr_value_kind_name(v->kind));
    return MR_OK;
}

int mr_value_check(struct mr_str bytes, struct mr_value *out, struct mr_error *e)
{
    if ((uintptr_t)bytes.p % MR_VALUE_ALIGN)
        return mr_fail(e, MR_EINVAL, "value not aligned to %d bytes", MR_VALUE_ALIGN);
    if (bytes.n < sizeof(struct mr_value_header))
        return mr_fail(e, MR_EFORMAT, "value cut off: %zu bytes, a header takes %zu", bytes.n,
            sizeof(struct mr_value_header));
    /* Members of raw.dims after the end of the header are not set and not read. */
    struct raw_header raw;
    memcpy(&raw.h, bytes.p, sizeof raw.h);
    int err = check_identity(&raw, bytes.n, e);
    if (err) return err;
    memcpy(raw.dims, bytes.p + sizeof raw.h, raw.h.header_bytes - sizeof raw.h);
    err = check_extent(&raw, bytes.n, e);
    if (err) return err;

    struct mr_value v = {
        .kind = (enum mr_value_kind)raw.h.kind,
        .is_drawn = raw.h.flags & MR_VALUE_DRAWN,
        .extent = (const unsigned char *)bytes.p,
        .nbytes = raw.h.nbytes,
        .data = (const unsigned char *)bytes.p + raw.h.data_offset,
        .data_bytes = raw.h.data_bytes,
        .meta = (const unsigned char *)bytes.p + raw.h.meta_offset,
        .meta_bytes = raw.h.meta_bytes,
    };
    v.tensor.dtype = mr_dtype_is_valid(raw.h.dtype) ? (enum mr_dtype)raw.h.dtype : MR_DTYPE_NONE;
    v.tensor.ndim = raw.h.ndim;
    v.tensor.data = v.data;
    memcpy(v.tensor.shape, raw.dims, raw.h.ndim * sizeof raw.dims[0]);
    err = check_kind(&raw, &v, e);
    if (err) return err;
    *out = v;
    return MR_OK;
}

static int check_deep_tensor(const struct mr_value *v, struct mr_error *e)
{
    if (v->tensor.dtype != MR_DTYPE_BOOL) return MR_OK;
    unsigned char all = 0;
    for (uint64_t i = 0; i < v->data_bytes; i++)
        all |= v->data[i];
    return all > 1 ? mr_fail(e, MR_EFORMAT, "bool tensor with a byte that is not 0 or 1") : MR_OK;
}

static int check_deep_table(const struct mr_value *v, struct mr_error *e)
{
    struct mr_table t;
    int err = mr_table_open(v, &t, e);
    for (uint32_t i = 0; !err && i < t.columns_count; i++) {
        struct mr_column c;
        err = mr_table_column(&t, i, &c, e);
        if (!err) err = mr_column_check_deep(&c, e);
    }
    return err;
}

static int check_deep_collection(const struct mr_value *v, struct mr_error *e)
{
    struct mr_collection c;
    int err = mr_collection_open(v, &c, e);
    if (!err && c.divisions.n) err = mr_pack_check(c.divisions, 0, e);
    for (uint32_t i = 0; !err && i < c.count; i++) {
        struct mr_collection_part part;
        err = mr_collection_part(&c, i, &part, e);
        if (!err && part.inline_pack.n) err = mr_pack_check(part.inline_pack, 0, e);
    }
    return err;
}

int mr_value_check_deep(struct mr_str bytes, struct mr_value *out, struct mr_error *e)
{
    struct mr_value v;
    int err = mr_value_check(bytes, &v, e);
    if (err) return err;
    switch (v.kind) {
    case MR_VALUE_TENSOR: err = check_deep_tensor(&v, e); break;
    case MR_VALUE_TABLE: err = check_deep_table(&v, e); break;
    case MR_VALUE_COLLECTION: err = check_deep_collection(&v, e); break;
    case MR_VALUE_PACK: err = mr_pack_check(mr_str_of(v.data, v.data_bytes), 0, e); break;
    case MR_VALUE_MODEL: err = mr_pack_check(mr_str_of(v.meta, v.meta_bytes), 0, e); break;
    case MR_VALUE_BYTES:
    case MR_VALUE_NONE: break;
    }
    if (err) return err;
    *out = v;
    return MR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

uint64_t mr_value_data_offset(enum mr_value_kind kind, unsigned ndim)
{
    return mr_align_up(header_bytes_of(kind, ndim), MR_VALUE_ALIGN);
}

void mr_value_write_header(void *extent, const struct mr_value_frame *f)
{
    mr_assert((uintptr_t)extent % MR_VALUE_ALIGN == 0);
    mr_assert(f->ndim <= MR_TENSOR_DIMS_MAX);
    uint64_t data_offset = mr_value_data_offset(f->kind, f->ndim);
    uint64_t data_end = data_offset + f->data_bytes;
    mr_assert(!f->meta_bytes || f->meta_offset >= data_end);
    struct raw_header raw = {
        .h = {.magic = MR_VALUE_MAGIC,
            .layout_version = MR_LAYOUT_VERSION,
            .kind = (uint8_t)f->kind,
            .dtype = (uint8_t)f->dtype,
            .ndim = (uint8_t)f->ndim,
            .header_bytes = (uint16_t)header_bytes_of(f->kind, f->ndim),
            .nbytes = f->meta_bytes ? f->meta_offset + f->meta_bytes : data_end,
            .data_offset = data_offset,
            .data_bytes = f->data_bytes,
            .meta_offset = f->meta_bytes ? f->meta_offset : 0,
            .meta_bytes = f->meta_bytes},
    };
    if (f->ndim) memcpy(raw.dims, f->shape, f->ndim * sizeof raw.dims[0]);
    if (f->kind == MR_VALUE_TENSOR) {
        int64_t strides[MR_TENSOR_DIMS_MAX] = {0};
        mr_tensor_strides(f->dtype, f->ndim, f->shape, strides);
        memcpy(raw.dims + f->ndim, strides, f->ndim * sizeof strides[0]);
    }
    raw.h.checksum = header_checksum(&raw);
    memcpy(extent, &raw, raw.h.header_bytes);
    memset((unsigned char *)extent + raw.h.header_bytes, 0, data_offset - raw.h.header_bytes);
}

void mr_value_mark_drawn(void *extent)
{
    struct raw_header raw;
    memcpy(&raw.h, extent, sizeof raw.h);
    bool is_header = raw.h.magic == MR_VALUE_MAGIC && raw.h.header_bytes >= sizeof raw.h &&
                     raw.h.header_bytes <= sizeof raw;
    /* Without a valid header nothing is done: a plug-in has written something else, and
     * mr_value_check will say what is wrong. */
    if (!is_header) return;
    memcpy(&raw, extent, raw.h.header_bytes);
    raw.h.flags |= MR_VALUE_DRAWN;
    raw.h.checksum = header_checksum(&raw);
    memcpy(extent, &raw, sizeof raw.h);
}

bool mr_value_is_drawn(struct mr_str extent)
{
    struct mr_value_header h;
    if (extent.n < sizeof h) return false;
    memcpy(&h, extent.p, sizeof h);
    return h.magic == MR_VALUE_MAGIC && h.flags & MR_VALUE_DRAWN;
}

bool mr_value_pack_is_drawn(struct mr_str pack)
{
    if (pack.n < sizeof(struct mr_value_header)) return false;
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item;
    if (mr_pack_next(&r, &item) || item.type != MR_PACK_EXT) return false;
    return mr_value_is_drawn(mr_str_of(item.bytes.p, item.bytes.n));
}

uint64_t mr_tensor_bytes(enum mr_dtype dtype, unsigned ndim, const uint64_t *shape)
{
    uint64_t bytes = 0;
    if (mr_tensor_shape_check(dtype, ndim, shape, NULL, &bytes, NULL)) return 0;
    uint64_t total = mr_value_data_offset(MR_VALUE_TENSOR, ndim) + bytes;
    return total > MR_OBJECT_BYTES_MAX ? 0 : total;
}

void *mr_tensor_build(void *extent, enum mr_dtype dtype, unsigned ndim, const uint64_t *shape)
{
    struct mr_value_frame f = {
        .kind = MR_VALUE_TENSOR, .dtype = dtype, .ndim = ndim, .shape = shape};
    int err = mr_tensor_shape_check(dtype, ndim, shape, NULL, &f.data_bytes, NULL);
    mr_assert(!err);
    mr_value_write_header(extent, &f);
    return (unsigned char *)extent + mr_value_data_offset(MR_VALUE_TENSOR, ndim);
}

static uint64_t plain_size(uint64_t data_bytes)
{
    if (data_bytes > MR_OBJECT_BYTES_MAX - sizeof(struct mr_value_header)) return 0;
    return sizeof(struct mr_value_header) + data_bytes;
}

static void *plain_build(void *extent, enum mr_value_kind kind, uint64_t data_bytes)
{
    mr_assert(plain_size(data_bytes));
    mr_value_write_header(extent, &(struct mr_value_frame){.kind = kind, .data_bytes = data_bytes});
    return (unsigned char *)extent + sizeof(struct mr_value_header);
}

uint64_t mr_value_bytes_size(uint64_t data_bytes)
{
    return plain_size(data_bytes);
}

void *mr_value_bytes_build(void *extent, uint64_t data_bytes)
{
    return plain_build(extent, MR_VALUE_BYTES, data_bytes);
}

uint64_t mr_value_pack_size(uint64_t pack_bytes)
{
    return plain_size(pack_bytes);
}

void *mr_value_pack_build(void *extent, uint64_t pack_bytes)
{
    return plain_build(extent, MR_VALUE_PACK, pack_bytes);
}

static uint64_t model_meta_offset(uint64_t count)
{
    return mr_align_up(
        mr_value_data_offset(MR_VALUE_MODEL, 1) + count * sizeof(float), MR_VALUE_ALIGN);
}

uint64_t mr_value_model_size(uint64_t count, struct mr_str meta)
{
    if (count > MR_OBJECT_BYTES_MAX / 8 || meta.n > MR_OBJECT_BYTES_MAX / 8) return 0;
    return model_meta_offset(count) + meta.n;
}

float *mr_value_model_build(void *extent, uint64_t count, struct mr_str meta)
{
    mr_assert(meta.n && mr_value_model_size(count, meta));
    struct mr_value_frame f = {.kind = MR_VALUE_MODEL,
        .dtype = MR_DTYPE_F32,
        .ndim = 1,
        .shape = &count,
        .data_bytes = count * sizeof(float),
        .meta_offset = model_meta_offset(count),
        .meta_bytes = meta.n};
    mr_value_write_header(extent, &f);
    unsigned char *data = (unsigned char *)extent + mr_value_data_offset(MR_VALUE_MODEL, 1);
    unsigned char *end = (unsigned char *)extent + f.meta_offset;
    memset(data + f.data_bytes, 0, (size_t)(end - (data + f.data_bytes)));
    memcpy(end, meta.p, meta.n);
    return (float *)(void *)data;
}

/* ---- all at once ----------------------------------------------------------------------------- */

void *mr_value_heap_alloc(void *ctx, uint64_t bytes)
{
    void **out = ctx;
    *out = mr_alloc_aligned(bytes, MR_VALUE_ALIGN);
    return *out;
}

int mr_value_take(
    const struct mr_value_alloc *a, uint64_t bytes, void **extent_out, struct mr_error *e)
{
    if (!bytes)
        return mr_fail(e, MR_ELIMIT,
            "a result larger than the %" PRIu64 " bytes an object may have", MR_OBJECT_BYTES_MAX);
    void *extent = a->alloc(a->ctx, bytes);
    if (!extent) return mr_fail(e, MR_ELIMIT, "no room for a result of %" PRIu64 " bytes", bytes);
    mr_assert((uintptr_t)extent % MR_VALUE_ALIGN == 0);
    *extent_out = extent;
    return MR_OK;
}

int mr_tensor_new(const struct mr_value_alloc *a, enum mr_dtype dtype, unsigned ndim,
    const uint64_t *shape, void **data_out, struct mr_error *e)
{
    int err = mr_tensor_shape_check(dtype, ndim, shape, NULL, NULL, e);
    if (err) return err;
    void *extent = NULL;
    err = mr_value_take(a, mr_tensor_bytes(dtype, ndim, shape), &extent, e);
    if (err) return err;
    *data_out = mr_tensor_build(extent, dtype, ndim, shape);
    return MR_OK;
}

static int put_plain(const struct mr_value_alloc *a, enum mr_value_kind kind, struct mr_str bytes,
    struct mr_error *e)
{
    void *extent = NULL;
    int err = mr_value_take(a, plain_size(bytes.n), &extent, e);
    if (err) return err;
    void *data = plain_build(extent, kind, bytes.n);
    if (bytes.n) memcpy(data, bytes.p, bytes.n);
    return MR_OK;
}

int mr_value_put_bytes(const struct mr_value_alloc *a, struct mr_str bytes, struct mr_error *e)
{
    return put_plain(a, MR_VALUE_BYTES, bytes, e);
}

/* ---- packs ----------------------------------------------------------------------------------- */

/* True: the pack is a whole value (MR_PACK_EXT_VALUE), and `*extent` is set to the bytes of this
 * value's extent. */
static bool is_extent(struct mr_str pack, struct mr_str *extent)
{
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item;
    if (mr_pack_next(&r, &item)) return false;
    *extent = item.bytes;
    return item.type == MR_PACK_EXT && item.ext == MR_PACK_EXT_VALUE;
}

int mr_value_put_pack(const struct mr_value_alloc *a, struct mr_str pack, struct mr_error *e)
{
    struct mr_str inside;
    if (!is_extent(pack, &inside)) {
        mr_assert(pack.n);
        return put_plain(a, MR_VALUE_PACK, pack, e);
    }
    struct mr_value v;
    void *extent = NULL;
    int err = mr_value_take(a, inside.n, &extent, e);
    if (err) return err;
    memcpy(extent, inside.p, inside.n);
    return mr_value_check_deep(mr_str_of(extent, inside.n), &v, e);
}

int mr_value_from_pack(
    struct mr_str pack, const struct mr_value_alloc *a, struct mr_value *out, struct mr_error *e)
{
    struct mr_str inside;
    if (!is_extent(pack, &inside)) {
        struct mr_value v = {.kind = MR_VALUE_PACK,
            .nbytes = plain_size(pack.n),
            .data = (const unsigned char *)pack.p,
            .data_bytes = pack.n};
        int err = check_pack(&v, e);
        if (!err) *out = v;
        return err;
    }
    if ((uintptr_t)inside.p % MR_VALUE_ALIGN == 0 || !a) return mr_value_check_deep(inside, out, e);
    void *extent = NULL;
    int err = mr_value_take(a, inside.n, &extent, e);
    if (err) return err;
    memcpy(extent, inside.p, inside.n);
    return mr_value_check_deep(mr_str_of(extent, inside.n), out, e);
}

/* The most bytes that a MessagePack extension has before its data: tag, length (8 or 16 bits) and
 * type. */
#define EXT_OVERHEAD 4

int mr_value_to_pack(const struct mr_value *v, struct mr_buf *out)
{
    if (v->kind == MR_VALUE_PACK) {
        if (v->data_bytes > MR_INLINE_VALUE_BYTES_MAX) return MR_ETOOBIG;
        mr_buf_add(out, v->data, v->data_bytes);
        return mr_buf_status(out);
    }
    if (v->nbytes > MR_INLINE_VALUE_BYTES_MAX - EXT_OVERHEAD) return MR_ETOOBIG;
    mr_pack_ext(out, MR_PACK_EXT_VALUE, mr_str_of(v->extent, v->nbytes));
    return mr_buf_status(out);
}
