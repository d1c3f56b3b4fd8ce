/* Decodes the arguments of an operator (resolve.h). */
#include "ops/resolve.h"

#include "base/assert.h"
#include "base/limits.h"
#include "store/object/value.h"

#include <stdlib.h>

/* The arguments, an input inside them, and a value inside the input may each nest MR_DEPTH_MAX
 * deep. */
#define FRAMES_MAX (3 * MR_DEPTH_MAX)
/* Bound on the references that are followed one after the other, such as an input, its value, and
 * the pack in the value. */
#define HOPS_MAX 4

/* A list or dict whose members are being decoded. */
struct frame {
    struct mr_arg *items;
    uint32_t count;
    uint32_t at;
    struct mr_pack_reader reader;
    bool dict;
    /* True: references to inputs are allowed. False: this container comes from an input. */
    bool slots;
    /* True: this list or dict is part of the pack that the frame around it reads, so that frame
     * continues where this list or dict ends. False: it is a pack of its own, which is the value of
     * an input or is stored in an extent. */
    bool shared;
};

static int out_of_scratch(struct mr_error *e)
{
    return mr_fail(e, MR_ELIMIT, "the arguments need more memory than one call may take");
}

/* Sets single fields of an argument. Building and copying a whole struct would cost more than the
 * rest of a small call. */
static void set_arg(struct mr_arg *a, const struct mr_pack_item *item)
{
    switch (item->type) {
    case MR_PACK_EXT:
    case MR_PACK_NIL: a->type = MR_ARG_NIL; break;
    case MR_PACK_BOOL:
        a->type = MR_ARG_BOOL;
        a->boolean = item->boolean;
        break;
    case MR_PACK_INT:
        a->type = MR_ARG_INT;
        a->i = item->i;
        break;
    case MR_PACK_UINT:
        a->type = MR_ARG_UINT;
        a->u = item->u;
        break;
    case MR_PACK_FLOAT:
        a->type = MR_ARG_FLOAT;
        a->f = item->f;
        break;
    case MR_PACK_TEXT:
    case MR_PACK_BYTES:
        a->type = item->type == MR_PACK_TEXT ? MR_ARG_TEXT : MR_ARG_BYTES;
        a->bytes.p = item->bytes.p;
        a->bytes.n = item->bytes.n;
        break;
    case MR_PACK_LIST: a->type = MR_ARG_LIST; break;
    case MR_PACK_MAP: a->type = MR_ARG_DICT; break;
    }
}

/* Decodes a value extent. An extent that contains a pack is not decoded to the end: `*inner`
 * receives the pack. */
static int fill_extent(const struct mr_resolve *x, struct mr_str extent, struct mr_arg *arg,
    struct mr_str *inner, struct mr_error *e)
{
    /* An extent inside a pack is not aligned. */
    if ((uintptr_t)extent.p % MR_VALUE_ALIGN) {
        void *copy = mr_call_arena_take(x->scratch, extent.n, MR_VALUE_ALIGN);
        if (!copy) return out_of_scratch(e);
        memcpy(copy, extent.p, extent.n);
        extent.p = copy;
    }
    struct mr_value v;
    int err = mr_value_check(extent, &v, e);
    if (err) return err;
    if (v.kind != MR_VALUE_PACK) arg->extent = mr_str_of(extent.p, (size_t)v.nbytes);
    switch (v.kind) {
    case MR_VALUE_TENSOR: {
        struct mr_tensor *t = mr_call_arena_take(x->scratch, sizeof *t, _Alignof(struct mr_tensor));
        if (!t) return out_of_scratch(e);
        *t = v.tensor;
        arg->type = MR_ARG_TENSOR;
        arg->tensor = t;
        return MR_OK;
    }
    case MR_VALUE_BYTES:
        arg->type = MR_ARG_BYTES;
        arg->bytes = mr_str_of(v.data, (size_t)v.data_bytes);
        return MR_OK;
    case MR_VALUE_PACK: *inner = mr_str_of(v.data, (size_t)v.data_bytes); return MR_OK;
    case MR_VALUE_NONE:
    case MR_VALUE_TABLE:
    case MR_VALUE_MODEL:
    case MR_VALUE_COLLECTION: arg->type = MR_ARG_VALUE; return MR_OK;
    }
    return MR_OK;
}

/* Decodes a reference to an input. As with fill_extent, `*inner` receives a value that is a pack.
 */
static int fill_input(const struct mr_resolve *x, const struct mr_pack_item *item,
    struct mr_arg *arg, struct mr_str *inner, struct mr_error *e)
{
    uint32_t slot = mr_pack_input_slot(item);
    if (slot >= x->inputs_count)
        return mr_fail(e, MR_EFORMAT, "argument refers to input %u of %u", slot, x->inputs_count);
    const struct mr_op_input *in = &x->inputs[slot];
    if (arg->input == MR_ARG_NO_INPUT) arg->input = slot;
    arg->object = in->object;
    if (x->by_reference && !mr_object_id_is_none(in->object)) {
        arg->type = MR_ARG_OBJECT;
        arg->extent = in->extent;
        return MR_OK;
    }
    if (in->pack.n) {
        *inner = in->pack;
        return MR_OK;
    }
    return fill_extent(x, in->extent, arg, inner, e);
}

static int open_container(
    const struct mr_resolve *x, struct mr_arg *arg, struct frame *child, struct mr_error *e)
{
    child->items = mr_call_arena_take(
        x->scratch, MR_MAX(child->count, 1u) * sizeof *arg, _Alignof(struct mr_arg));
    if (!child->items) return out_of_scratch(e);
    arg->items = child->items;
    arg->count = child->count;
    return MR_OK;
}

/* Decodes one item at `f->reader` into `*arg`. If the item is a list or dict, `*child` is prepared
 * for the members; otherwise child->items is NULL. */
static int fill(const struct mr_resolve *x, struct frame *f, struct mr_arg *arg,
    struct frame *child, struct mr_error *e)
{
    struct mr_pack_reader own;
    struct mr_pack_reader *from = &f->reader;
    child->items = NULL;
    arg->input = MR_ARG_NO_INPUT;
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        struct mr_pack_item item;
        if (mr_pack_next(from, &item))
            return mr_fail(e, MR_EFORMAT, "the arguments are not a well-formed pack");
        bool slots = f->slots && from == &f->reader;
        struct mr_str inner = {0};
        int err = MR_OK;
        if (item.type != MR_PACK_EXT) {
            set_arg(arg, &item);
            if (item.type != MR_PACK_LIST && item.type != MR_PACK_MAP) return MR_OK;
            *child = (struct frame){.count = item.count,
                .reader = *from,
                .slots = slots,
                .dict = item.type == MR_PACK_MAP,
                .shared = from == &f->reader};
            return open_container(x, arg, child, e);
        }
        if (item.ext == MR_PACK_EXT_OBJECT) {
            arg->type = MR_ARG_OBJECT;
            return mr_object_id_from_bytes(item.bytes, &arg->object);
        }
        if (item.ext == MR_PACK_EXT_INPUT && !slots)
            return mr_fail(e, MR_EFORMAT, "an input slot inside a value");
        err = item.ext == MR_PACK_EXT_INPUT ? fill_input(x, &item, arg, &inner, e)
                                            : fill_extent(x, item.bytes, arg, &inner, e);
        if (err || !inner.p) return err;
        own = mr_pack_read(inner);
        from = &own;
    }
    return mr_fail(e, MR_EFORMAT, "values are packed into each other too often");
}

/* Reads the name of the next member of a dict. */
static int read_name(struct frame *f, struct mr_arg *arg, struct mr_error *e)
{
    struct mr_pack_item item;
    if (mr_pack_next(&f->reader, &item) || item.type != MR_PACK_TEXT)
        return mr_fail(e, MR_EFORMAT, "the name of a dict's member is not a text");
    arg->name = item.bytes;
    return MR_OK;
}

int mr_resolve(
    const struct mr_resolve *x, struct mr_str pack, struct mr_arg *out, struct mr_error *e)
{
    struct frame frames[FRAMES_MAX];
    uint32_t depth = 1;
    *out = (struct mr_arg){.type = MR_ARG_NIL};
    frames[0] =
        (struct frame){.items = out, .count = 1, .reader = mr_pack_read(pack), .slots = true};
    for (;;) {
        struct frame *f = &frames[depth - 1];
        if (f->at == f->count) {
            if (depth == 1) return MR_OK;
            if (f->shared) frames[depth - 2].reader.at = f->reader.at;
            depth--;
            continue;
        }
        struct mr_arg *arg = &f->items[f->at++];
        int err = f->dict ? read_name(f, arg, e) : MR_OK;
        if (err) return err;
        struct frame child;
        err = fill(x, f, arg, &child, e);
        if (err) return err;
        if (!child.items) continue;
        if (depth == FRAMES_MAX) return mr_fail(e, MR_ELIMIT, "arguments are nested too deeply");
        frames[depth++] = child;
    }
}

struct mr_arg mr_arg_of_fallback(const char *json)
{
    struct mr_arg a = {.type = MR_ARG_NIL, .input = MR_ARG_NO_INPUT};
    size_t n = strlen(json);
    switch (json[0]) {
    case 'n': break;
    case 't':
    case 'f':
        a.type = MR_ARG_BOOL;
        a.boolean = json[0] == 't';
        break;
    case '"':
        mr_assert(n >= 2 && json[n - 1] == '"');
        a.type = MR_ARG_TEXT;
        a.bytes = mr_str_of(json + 1, n - 2);
        break;
    case '[': a.type = MR_ARG_LIST; break;
    case '{': a.type = MR_ARG_DICT; break;
    default:
        if (strpbrk(json, ".eE")) {
            a.type = MR_ARG_FLOAT;
            a.f = strtod(json, NULL);
        } else {
            a.type = MR_ARG_INT;
            a.i = strtoll(json, NULL, 10);
        }
        break;
    }
    return a;
}
