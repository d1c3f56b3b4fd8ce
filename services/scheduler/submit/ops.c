#include "services/scheduler/submit/ops.h"

#include "base/alloc.h"
#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

static int by_text(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

static bool find_op(const struct mr_parser_ops *o, struct mr_str op, struct mr_graph_op_info *out)
{
    if (o->builtin.find(o->builtin.ctx, op, out)) return true;
    char name[MR_OP_NAME_BYTES_MAX + 1];
    if (op.n >= sizeof name) return false;
    memcpy(name, op.p, op.n);
    name[op.n] = 0;
    const char *key = name;
    if (!o->foreign_count ||
        !bsearch(&key, o->foreign, o->foreign_count, sizeof *o->foreign, by_text))
        return false;
    *out = (struct mr_graph_op_info){.any_positional = true, .any_named = true};
    return true;
}

static bool find_or_note(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    struct mr_parser_ops *const *o = ctx;
    bool found = find_op(*o, op, out);
    if (!found) (*o)->has_missed = true;
    return found;
}

static struct mr_str name_at(const void *ctx, uint32_t i)
{
    struct mr_parser_ops *const *of = ctx;
    const struct mr_parser_ops *o = *of;
    uint32_t builtin = mr_registry_count(o->registry);
    if (i < builtin) return mr_str(mr_registry_at(o->registry, i)->name);
    return i - builtin < o->foreign_count ? mr_str(o->foreign[i - builtin]) : MR_STR("");
}

void mr_parser_ops_init(struct mr_parser_ops *o)
{
    o->registry = mr_registry_new();
    o->builtin = mr_registry_catalogue(o->registry);
}

void mr_parser_ops_fini(struct mr_parser_ops *o)
{
    for (uint32_t i = 0; i < o->foreign_count; i++)
        mr_release(o->foreign[i]);
    mr_release(o->foreign);
    mr_registry_free(&o->registry);
}

void mr_parser_ops_add(struct mr_parser_ops *o, char *name)
{
    struct mr_graph_op_info info;
    if (o->foreign_count >= MR_FOREIGN_OPS_MAX || find_op(o, mr_str(name), &info)) {
        mr_release(name);
        return;
    }
    size_t old = o->foreign_count * sizeof *o->foreign;
    o->foreign = mr_grow(o->foreign, old, old + sizeof *o->foreign);
    o->foreign[o->foreign_count++] = name;
    qsort(o->foreign, o->foreign_count, sizeof *o->foreign, by_text);
}

struct mr_graph_catalogue mr_parser_ops_catalogue(struct mr_parser_ops *const *o)
{
    return (struct mr_graph_catalogue){.find = find_or_note, .name_at = name_at, .ctx = o};
}
