/* Reads the arguments of a task (args.h). */
#include "graph/args.h"

static int wrong(struct mr_error *e)
{
    return mr_fail(e, MR_EFORMAT,
        "arguments are neither a list nor a map that starts with \"\" and the positional list");
}

int mr_args_open(struct mr_str pack, struct mr_args *out, struct mr_error *e)
{
    struct mr_args a = {0};
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item;
    if (mr_pack_next(&r, &item)) return wrong(e);
    if (item.type == MR_PACK_LIST) {
        a.positional_count = item.count;
        a.positional = r;
        a.named = (struct mr_pack_reader){r.p, r.n, r.n};
        *out = a;
        return MR_OK;
    }
    if (item.type != MR_PACK_MAP || !item.count) return wrong(e);
    a.named_count = item.count - 1;
    if (mr_pack_next(&r, &item) || item.type != MR_PACK_TEXT || item.bytes.n) return wrong(e);
    a.named = r; /* mr_pack_skip below moves this reader past the positional list */
    if (mr_pack_next(&r, &item) || item.type != MR_PACK_LIST) return wrong(e);
    a.positional_count = item.count;
    a.positional = r;
    if (mr_pack_skip(&a.named, NULL)) return wrong(e);
    *out = a;
    return MR_OK;
}
