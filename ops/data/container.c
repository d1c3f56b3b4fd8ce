/* Operators for lists and dicts, and for access to their members: identity, list, dict, get_item,
 * len, concat, range. */
#include "ops/data/data.h"

#include "base/limits.h"
#include "base/pack.h"
#include "ops/arg.h"
#include "ops/array/array.h"
#include "store/object/value.h"

#include <stdio.h>

#define RANGE_MAX 1048576

static int run_identity(struct mr_op_call *call)
{
    return call->does->return_arg(call, &call->args[0]);
}

static int run_list(struct mr_op_call *call)
{
    struct mr_arg list = {.type = MR_ARG_LIST,
        .input = MR_ARG_NO_INPUT,
        .items = call->rest,
        .count = call->rest_count};
    return call->does->return_arg(call, &list);
}

/* Runs the operator dict. Accepts a dict, or a list of [name, value] pairs; the last of equal names
 * counts. */
static int run_dict(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    if (x->type == MR_ARG_DICT) return call->does->return_arg(call, x);
    struct mr_arg *members = call->does->scratch(call, MR_MAX(x->count, 1u) * sizeof *members);
    if (!members) return MR_ELIMIT;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct mr_arg *pair = &x->items[i];
        if (pair->type != MR_ARG_LIST || pair->count != 2 || pair->items[0].type != MR_ARG_TEXT)
            return call->does->fail(call, MR_EINVAL,
                "argument \"pairs\": item %u: expected [name, value] with a text as name", i);
        members[i] = pair->items[1];
        members[i].name = pair->items[0].bytes;
    }
    uint32_t count = 0;
    /* The search is linear, because dicts have few names. */
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t at = 0;
        while (at < count && !mr_str_eq(members[at].name, members[i].name))
            at++;
        members[at] = members[i];
        if (at == count) count++;
    }
    struct mr_arg dict = {
        .type = MR_ARG_DICT, .input = MR_ARG_NO_INPUT, .items = members, .count = count};
    return call->does->return_arg(call, &dict);
}

/* ---- get_item ---- */

static int missing(struct mr_op_call *call, const char *what)
{
    if (call->args[2].type != MR_ARG_NIL) return call->does->return_arg(call, &call->args[2]);
    return call->does->fail(call, MR_ENOENT, "%s", what);
}

static int item_of_dict(struct mr_op_call *call, const struct mr_arg *x, const struct mr_arg *key)
{
    if (key->type != MR_ARG_TEXT)
        return call->does->fail(call, MR_EINVAL,
            "argument \"key\": expected text for a dict, got %s", mr_arg_type_name(key->type));
    for (uint32_t i = 0; i < x->count; i++)
        if (mr_str_eq(x->items[i].name, key->bytes))
            return call->does->return_arg(call, &x->items[i]);
    char what[200];
    (void)snprintf(what, sizeof what, "the dict has no \"%.*s\"", (int)MR_MIN(key->bytes.n, 150u),
        key->bytes.p);
    return missing(call, what);
}

/* Reads an index; a negative index counts from the end. False: there is no such item. */
static bool index_in(const struct mr_arg *key, uint64_t count, uint64_t *out)
{
    if (key->type != MR_ARG_INT) return false;
    int64_t i = key->i;
    if (i < 0 && (uint64_t) - (i + 1) < count) {
        *out = count - (uint64_t) - (i + 1) - 1;
        return true;
    }
    *out = (uint64_t)i;
    return i >= 0 && (uint64_t)i < count;
}

static int no_such_item(struct mr_op_call *call, const struct mr_arg *key, uint64_t count)
{
    if (key->type != MR_ARG_INT && key->type != MR_ARG_UINT)
        return call->does->fail(
            call, MR_EINVAL, "argument \"key\": expected int, got %s", mr_arg_type_name(key->type));
    char what[200];
    (void)snprintf(
        what, sizeof what, "no item %lld among %llu", (long long)key->i, (unsigned long long)count);
    return missing(call, what);
}

/* The result is the item at one index along axis 0, or at one index for each of the first axes. */
static int item_of_tensor(struct mr_op_call *call, const struct mr_arg *x, const struct mr_arg *key)
{
    struct mr_tensor t = *x->tensor;
    const struct mr_arg *keys = key->type == MR_ARG_LIST ? key->items : key;
    uint32_t count = key->type == MR_ARG_LIST ? key->count : 1;
    if (count > t.ndim)
        return call->does->fail(
            call, MR_EINVAL, "%u indices into a tensor of %u axes", count, t.ndim);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = 0;
        if (!index_in(&keys[i], t.shape[0], &at)) return no_such_item(call, &keys[i], t.shape[0]);
        t = mr_tensor_row(&t, at);
    }
    return mr_array_return(call, &t);
}

static int run_get_item(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    const struct mr_arg *key = &call->args[1];
    uint64_t at = 0;
    switch ((int)x->type) {
    case MR_ARG_DICT: return item_of_dict(call, x, key);
    case MR_ARG_TENSOR: return item_of_tensor(call, x, key);
    default: break;
    }
    if (!index_in(key, x->count, &at)) return no_such_item(call, key, x->count);
    return call->does->return_arg(call, &x->items[at]);
}

/* ---- len, concat, range ---- */

static uint64_t text_length(struct mr_str s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80; /* counts characters, not bytes */
    return n;
}

static int run_len(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    uint64_t n = 0;
    if (x->type == MR_ARG_TEXT) n = text_length(x->bytes);
    if (x->type == MR_ARG_BYTES) n = x->bytes.n;
    if (x->type == MR_ARG_LIST || x->type == MR_ARG_DICT) n = x->count;
    if (x->type == MR_ARG_TENSOR) {
        if (!x->tensor->ndim)
            return call->does->fail(call, MR_EINVAL, "a tensor without axes has no length");
        n = x->tensor->shape[0];
    }
    if (x->type == MR_ARG_VALUE) {
        struct mr_value v;
        struct mr_error why = {0};
        if (mr_value_check(x->extent, &v, &why))
            return call->does->fail(call, why.code, "%s", why.text);
        if (!v.tensor.ndim)
            return call->does->fail(
                call, MR_EINVAL, "a %s has no length", mr_value_kind_name(v.kind));
        n = v.tensor.shape[0];
    }
    return call->does->return_int(call, (int64_t)n);
}

static int concat_bytes(struct mr_op_call *call, const struct mr_arg *parts, uint32_t count)
{
    bool text = parts[0].type == MR_ARG_TEXT;
    uint64_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += parts[i].bytes.n;
    char *p = text ? call->does->scratch(call, n + 1) : call->does->return_bytes(call, n);
    if (!p) return MR_ELIMIT;
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].bytes.n) memcpy(p + at, parts[i].bytes.p, parts[i].bytes.n);
        at += parts[i].bytes.n;
    }
    return text ? call->does->return_text(call, mr_str_of(p, (size_t)n)) : MR_OK;
}

static int concat_lists(struct mr_op_call *call, const struct mr_arg *parts, uint32_t count)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += parts[i].count;
    struct mr_arg *items = call->does->scratch(call, MR_MAX(n, 1u) * sizeof *items);
    if (!items) return MR_ELIMIT;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < parts[i].count; k++)
            items[at++] = parts[i].items[k];
    struct mr_arg list = {
        .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = items, .count = (uint32_t)n};
    return call->does->return_arg(call, &list);
}

static int run_concat(struct mr_op_call *call)
{
    const struct mr_arg *parts = call->rest;
    uint32_t count = call->rest_count;
    if (count == 1 && parts[0].type == MR_ARG_LIST && parts[0].count &&
        parts[0].items[0].type != MR_ARG_INT && parts[0].items[0].type != MR_ARG_FLOAT) {
        count = parts[0].count;
        parts = parts[0].items;
    }
    for (uint32_t i = 1; i < count; i++)
        if (parts[i].type != parts[0].type)
            return call->does->fail(call, MR_EINVAL,
                "argument \"parts\": expected all of one type, got %s and %s",
                mr_arg_type_name(parts[0].type), mr_arg_type_name(parts[i].type));
    switch ((int)parts[0].type) {
    case MR_ARG_TEXT:
    case MR_ARG_BYTES: return concat_bytes(call, parts, count);
    case MR_ARG_LIST: return concat_lists(call, parts, count);
    case MR_ARG_TENSOR: return mr_array_concat(call, parts, count, 0);
    default:
        return call->does->fail(call, MR_EINVAL,
            "argument \"parts\": expected texts, bytes, lists or tensors, got %s",
            mr_arg_type_name(parts[0].type));
    }
}

static int run_range(struct mr_op_call *call)
{
    int64_t start = call->args[0].i;
    int64_t stop = call->args[1].i;
    int64_t step = call->args[2].i;
    /* As in Python, range(stop) has one argument. */
    if (call->args[1].type == MR_ARG_NIL) {
        stop = start;
        start = 0;
    }
    if (step == 0) return call->does->fail(call, MR_EINVAL, "argument \"step\": expected not 0");
    uint64_t distance =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    bool empty = step > 0 ? stop <= start : stop >= start;
    uint64_t n = empty ? 0 : (distance - 1) / stride + 1;
    if (n > RANGE_MAX)
        return call->does->fail(call, MR_ELIMIT,
            "a list of %llu numbers, at most %d are allowed; array.arange makes tensors",
            (unsigned long long)n, RANGE_MAX);
    struct mr_arg *items = call->does->scratch(call, MR_MAX(n, 1u) * sizeof *items);
    if (!items) return MR_ELIMIT;
    for (uint64_t i = 0; i < n; i++)
        items[i] = (struct mr_arg){.type = MR_ARG_INT,
            .input = MR_ARG_NO_INPUT,
            .i = (int64_t)((uint64_t)start + i * (uint64_t)step)};
    struct mr_arg list = {
        .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = items, .count = (uint32_t)n};
    return call->does->return_arg(call, &list);
}

#define D MR_OP_DETERMINISTIC
#define DS (MR_OP_DETERMINISTIC | MR_OP_SMALL)

static const struct mr_op_param any_value[] = {
    {"x", MR_TAKES_ANY, NULL, "Any value."},
};
static const struct mr_op_param items[] = {
    {"items", MR_TAKES_ANY, "null", "Any values."},
};
static const struct mr_op_param pairs[] = {
    {"pairs", MR_TAKES_LIST | MR_TAKES_DICT, NULL, "A list of [name, value], or a dict."},
};
static const struct mr_op_param item[] = {
    {"x", MR_TAKES_LIST | MR_TAKES_DICT | MR_TAKES_TENSOR, NULL, "The list, dict or tensor."},
    {"key", MR_TAKES_INT | MR_TAKES_TEXT | MR_TAKES_LIST, NULL,
        "A name, an index (negative: from the end), or a list of indices into a tensor."},
    {"default", MR_TAKES_ANY, "null",
        "Returned if there is no such item; without it, a missing item is an error."},
};
static const struct mr_op_param measured[] = {
    {"x",
        MR_TAKES_LIST | MR_TAKES_DICT | MR_TAKES_TENSOR | MR_TAKES_TEXT | MR_TAKES_BYTES |
            MR_TAKES_VALUE,
        NULL, "A list, dict, text, bytes, tensor, table or collection."},
};
static const struct mr_op_param parts[] = {
    {"parts", MR_TAKES_LIST | MR_TAKES_TEXT | MR_TAKES_BYTES | MR_TAKES_TENSOR, NULL,
        "Texts, bytes, lists or tensors, all of one type, or one list of these."},
};
static const struct mr_op_param range_params[] = {
    {"start", MR_TAKES_INT, NULL,
        "The first number. Given alone, it is the stop, and the start is 0."},
    {"stop", MR_TAKES_INT, "null", "The end, not included."},
    {"step", MR_TAKES_INT, "1", "Difference between neighbours."},
};

const struct mr_op_desc *mr_container_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("identity", DS | MR_OP_PASSES, any_value, 200, run_identity, "value",
            "Returns its argument."),
        MR_OP_ROW("list", DS | MR_OP_VARIADIC | MR_OP_PASSES, items, 300, run_list, "list",
            "Makes a list."),
        MR_OP_ROW(
            "dict", DS | MR_OP_PASSES, pairs, 500, run_dict, "dict", "Makes a dict from pairs."),
        MR_OP_ROW("get_item", DS | MR_OP_PASSES, item, 300, run_get_item, "value",
            "Returns an item of a list, a member of a dict, or a part of a tensor."),
        MR_OP_ROW("len", DS, measured, 300, run_len, "int",
            "Counts items, characters, bytes, rows or partitions."),
        MR_OP_ROW("concat", D | MR_OP_VARIADIC, parts, 500, run_concat,
            "text, bytes, list or tensor", "Joins texts, bytes, lists or tensors (along axis 0)."),
        MR_OP_ROW("range", D, range_params, 500, run_range, "list of ints",
            "Makes the numbers from start up to, but not including, stop."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
