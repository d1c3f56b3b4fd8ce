#include "ops/arg.h"

#include "base/limits.h"
#include "base/pack.h"

const char *mr_arg_type_name(enum mr_arg_type type)
{
    static const char *const names[] = {
        [MR_ARG_NIL] = "null",
        [MR_ARG_BOOL] = "bool",
        [MR_ARG_INT] = "int",
        [MR_ARG_UINT] = "int",
        [MR_ARG_FLOAT] = "float",
        [MR_ARG_TEXT] = "text",
        [MR_ARG_BYTES] = "bytes",
        [MR_ARG_LIST] = "list",
        [MR_ARG_DICT] = "dict",
        [MR_ARG_TENSOR] = "tensor",
        [MR_ARG_VALUE] = "value",
        [MR_ARG_OBJECT] = "object",
    };
    return (unsigned)type < MR_ARRAY_LEN(names) ? names[type] : "unknown";
}

static void pack_one(const struct mr_arg *a, struct mr_buf *out)
{
    switch (a->type) {
    case MR_ARG_NIL: mr_pack_nil(out); break;
    case MR_ARG_BOOL: mr_pack_bool(out, a->boolean); break;
    case MR_ARG_INT: mr_pack_int(out, a->i); break;
    case MR_ARG_UINT: mr_pack_uint(out, a->u); break;
    case MR_ARG_FLOAT: mr_pack_float(out, a->f); break;
    case MR_ARG_TEXT: mr_pack_text(out, a->bytes); break;
    case MR_ARG_BYTES: mr_pack_bytes(out, a->bytes); break;
    case MR_ARG_LIST: mr_pack_list(out, a->count); break;
    case MR_ARG_DICT: mr_pack_map(out, a->count); break;
    case MR_ARG_TENSOR:
    case MR_ARG_VALUE: mr_pack_ext(out, MR_PACK_EXT_VALUE, a->extent); break;
    case MR_ARG_OBJECT: mr_pack_object(out, a->object); break;
    }
}

int mr_arg_pack(const struct mr_arg *arg, struct mr_buf *out, struct mr_error *e)
{
    struct {
        const struct mr_arg *items;
        uint32_t count;
        uint32_t at;
        bool dict;
    } stack[3 * MR_DEPTH_MAX + 1];
    uint32_t depth = 1;
    stack[0].items = arg;
    stack[0].count = 1;
    stack[0].at = 0;
    stack[0].dict = false;
    while (depth) {
        if (stack[depth - 1].at == stack[depth - 1].count) {
            depth--;
            continue;
        }
        const struct mr_arg *a = &stack[depth - 1].items[stack[depth - 1].at++];
        if (stack[depth - 1].dict) mr_pack_text(out, a->name);
        pack_one(a, out);
        if (a->type != MR_ARG_LIST && a->type != MR_ARG_DICT) continue;
        if (depth > MR_DEPTH_MAX)
            return mr_fail(e, MR_ELIMIT, "a value is nested deeper than %d", MR_DEPTH_MAX);
        stack[depth].items = a->items;
        stack[depth].count = a->count;
        stack[depth].at = 0;
        stack[depth++].dict = a->type == MR_ARG_DICT;
    }
    return mr_buf_status(out)
               ? mr_fail(e, MR_ELIMIT, "a pack of more than %zu bytes", out->bytes_max)
               : MR_OK;
}
