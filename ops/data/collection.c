/* The operators collection and array.collection join many values by reference into one value;
 * array.partition returns one of these values. */
#include "ops/data/data.h"

#include "ops/arg.h"
#include "ops/array/array.h"
#include "store/object/collection.h"

#include <stdio.h>

/* Reads kind, type and shape of a part from its header alone, because the data may be on another
 * node. Returns the number of axes, or a negative error code. */
static int part_from_header(
    struct mr_op_call *call, uint32_t i, struct mr_str extent, struct mr_collection_part *out)
{
    struct mr_value_header h;
    if (extent.n < sizeof h)
        return call->does->fail(call, MR_ESTATE, "part %u: nothing is known of the object", i);
    memcpy(&h, extent.p, sizeof h);
    if (h.magic != MR_VALUE_MAGIC || h.ndim > MR_TENSOR_DIMS_MAX ||
        extent.n < sizeof h + h.ndim * sizeof(uint64_t))
        return call->does->fail(call, MR_EFORMAT, "part %u: the object's header is damaged", i);
    out->kind = (enum mr_value_kind)h.kind;
    out->dtype = (enum mr_dtype)h.dtype;
    out->nbytes = h.nbytes;
    memcpy(out->shape, extent.p + sizeof h, h.ndim * sizeof(uint64_t));
    return h.ndim;
}

static enum mr_value_kind kind_of(const struct mr_arg *a)
{
    if (a->type == MR_ARG_TENSOR) return MR_VALUE_TENSOR;
    return a->type == MR_ARG_BYTES ? MR_VALUE_BYTES : MR_VALUE_PACK;
}

/* Describes a part whose bytes are in the arguments. Returns the number of axes, or a negative
 * error code. */
static int inline_part(
    struct mr_op_call *call, uint32_t i, const struct mr_arg *a, struct mr_collection_part *out)
{
    if (a->type == MR_ARG_VALUE) {
        int ndim = part_from_header(call, i, a->extent, out);
        if (ndim < 0) return ndim;
    } else {
        out->kind = kind_of(a);
    }
    struct mr_buf b;
    mr_buf_init(&b, (size_t)1 << 20);
    struct mr_error why = {0};
    int err = mr_arg_pack(a, &b, &why);
    if (err) {
        mr_buf_fini(&b);
        return call->does->fail(call, err, "part %u: %s", i, why.text);
    }
    char *copy = call->does->scratch(call, b.n);
    if (copy) memcpy(copy, b.p, b.n);
    out->inline_pack = mr_str_of(copy, b.n);
    out->nbytes = a->extent.n ? a->extent.n : mr_value_pack_size(b.n);
    mr_buf_fini(&b);
    if (!copy) return MR_ELIMIT;
    if (a->type != MR_ARG_TENSOR) return 0;
    out->dtype = a->tensor->dtype;
    memcpy(out->shape, a->tensor->shape, a->tensor->ndim * sizeof(uint64_t));
    return (int)a->tensor->ndim;
}

/* Lays the parts one after the other along `axis`, and describes the whole in `s`. */
static int lay_out(struct mr_op_call *call, struct mr_collection_part *parts, unsigned ndim,
    int64_t axis, struct mr_collection_spec *s, uint64_t *shape)
{
    if (axis < -(int64_t)ndim || axis >= (int64_t)ndim)
        return call->does->fail(
            call, MR_ERANGE, "argument \"axis\": axis %lld of %u", (long long)axis, ndim);
    if (axis < 0) axis += ndim;
    memcpy(shape, parts[0].shape, ndim * sizeof *shape);
    shape[axis] = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        for (unsigned k = 0; k < ndim; k++)
            if (k != (unsigned)axis && parts[i].shape[k] != shape[k])
                return call->does->fail(
                    call, MR_EINVAL, "part %u differs from part 0 in the length of axis %u", i, k);
        parts[i].start[axis] = shape[axis];
        shape[axis] += parts[i].shape[axis];
    }
    s->axis = (uint8_t)axis;
    s->ndim = ndim;
    s->shape = shape;
    return MR_OK;
}

static int return_collection(struct mr_op_call *call, struct mr_collection_part *parts,
    uint32_t count, unsigned ndim, int64_t axis, bool alike)
{
    uint64_t shape[MR_TENSOR_DIMS_MAX] = {0};
    struct mr_collection_spec s = {
        .kind = count ? parts[0].kind : MR_VALUE_PACK, .parts = parts, .count = count};
    int err = MR_OK;
    if (alike && s.kind == MR_VALUE_TENSOR && ndim) {
        s.dtype = parts[0].dtype;
        err = lay_out(call, parts, ndim, axis, &s, shape);
    } else if (alike && s.kind == MR_VALUE_TABLE) {
        err = lay_out(call, parts, 2, 0, &s, shape);
    } else { /* the whole is a list of values */
        for (uint32_t i = 0; i < count; i++) {
            parts[i].start[0] = i;
            parts[i].shape[0] = 1;
        }
        shape[0] = count;
        s.kind = MR_VALUE_PACK;
        s.ndim = 1;
        s.shape = shape;
    }
    if (err) return err;
    void *extent = call->does->return_extent(call, mr_collection_bytes(&s));
    if (!extent) return MR_ELIMIT;
    mr_collection_build(extent, &s);
    return MR_OK;
}

static int collect(
    struct mr_op_call *call, const struct mr_arg *items, uint32_t count, int64_t axis)
{
    if (count > MR_COLLECTION_PARTS_MAX)
        return call->does->fail(
            call, MR_ELIMIT, "%u parts, at most %d are allowed", count, MR_COLLECTION_PARTS_MAX);
    struct mr_collection_part *parts = call->does->scratch(call, MR_MAX(count, 1u) * sizeof *parts);
    if (!parts) return MR_ELIMIT;
    int ndim = 0;
    bool alike = count > 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct mr_arg *a = &items[i];
        bool stored = a->type == MR_ARG_OBJECT;
        int axes = stored ? part_from_header(call, i, a->extent, &parts[i])
                          : inline_part(call, i, a, &parts[i]);
        if (axes < 0) return axes;
        if (stored) parts[i].id = a->object;
        if (i == 0) ndim = axes;
        alike &= parts[i].kind == parts[0].kind && parts[i].dtype == parts[0].dtype && axes == ndim;
    }
    return return_collection(call, parts, count, (unsigned)ndim, axis, alike);
}

/* Runs the operator collection. The parts are the arguments. If the only argument is a list that is
 * not itself an input, the parts are the members of the list. */
static int run_collection(struct mr_op_call *call)
{
    const struct mr_arg *first = &call->rest[0];
    if (call->rest_count == 1 && first->type == MR_ARG_LIST && first->input == MR_ARG_NO_INPUT)
        return collect(call, first->items, first->count, 0);
    return collect(call, call->rest, call->rest_count, 0);
}

static int run_array_collection(struct mr_op_call *call)
{
    return collect(call, call->args[0].items, call->args[0].count, call->args[1].i);
}

/* ---- array.partition ---- */

static int run_partition(struct mr_op_call *call)
{
    struct mr_value v;
    struct mr_collection c;
    struct mr_collection_part part;
    struct mr_error why = {0};
    int64_t i = 0;
    int err = mr_value_check(call->args[0].extent, &v, &why);
    if (!err) err = mr_collection_open(&v, &c, &why);
    if (err) return call->does->fail(call, err, "argument \"collection\": %s", why.text);
    err = mr_arg_int(call, &call->args[1], "index", -(int64_t)c.count, (int64_t)c.count - 1, &i);
    if (err) return err;
    err = mr_collection_part(&c, (uint32_t)(i < 0 ? i + c.count : i), &part, &why);
    if (err) return call->does->fail(call, err, "%s", why.text);
    struct mr_str extent;
    if (part.inline_pack.n) {
        struct mr_pack_reader r = mr_pack_read(part.inline_pack);
        struct mr_pack_item item;
        if (mr_pack_next(&r, &item) || item.type != MR_PACK_EXT)
            return call->does->return_pack(call, part.inline_pack);
        extent = item.bytes;
    } else {
        err = call->does->load(call, part.id, &extent);
        if (err) return err;
    }
    void *p = call->does->return_extent(call, extent.n);
    if (!p) return MR_ELIMIT;
    memcpy(p, extent.p, extent.n);
    return MR_OK;
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param collected[] = {
    {"parts", MR_TAKES_ANY, "null", "The values in order, or one list of values."},
};
static const struct mr_op_param along[] = {
    {"parts", MR_TAKES_LIST, NULL, "The tensors, in order."},
    {"axis", MR_TAKES_INT, "0", "The axis along which the tensors follow each other."},
};
static const struct mr_op_param chosen[] = {
    {"collection", MR_TAKES_VALUE, NULL, "The collection."},
    {"index", MR_TAKES_INT, NULL, "Index of the part, from 0; negative: from the end."},
};

const struct mr_op_desc *mr_collection_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("collection", D | MR_OP_BY_REFERENCE | MR_OP_VARIADIC, collected, 5000,
            run_collection, "collection",
            "Makes one value from many without moving them; tensors follow each other along axis "
            "0."),
        MR_OP_ROW("array.collection", D | MR_OP_BY_REFERENCE, along, 5000, run_array_collection,
            "collection",
            "Makes a distributed array from tensors that follow each other along an axis."),
        MR_OP_ROW("array.partition", D | MR_OP_MAY_BLOCK, chosen, 100000, run_partition, "value",
            "Returns one part of a collection."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
