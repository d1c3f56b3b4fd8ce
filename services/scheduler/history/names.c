#include "services/scheduler/history/names.h"

#include "base/alloc.h"
#include "base/unconst.h"

#include <string.h>
#include <xxhash.h>

void mr_trace_names_init(struct mr_trace_names *n)
{
    *n = (struct mr_trace_names){0};
    mr_index_init(&n->index, 16);
}

static bool name_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_trace_names *n = ctx;
    const struct mr_str *wanted = key;
    return mr_str_eq(n->names[item], *wanted);
}

static uint64_t name_hash(const void *ctx, uint32_t item)
{
    const struct mr_trace_names *n = ctx;
    return XXH3_64bits(n->names[item].p, n->names[item].n);
}

uint32_t mr_trace_names_number(struct mr_trace_names *n, struct mr_str name)
{
    uint64_t hash = XXH3_64bits(name.p, name.n);
    uint32_t found = mr_index_find(&n->index, hash, name_eq, n, &name);
    if (found != MR_INDEX_NONE) return found;
    if (n->count == n->room) {
        uint32_t more = MR_MAX(16u, n->room * 2);
        n->names = mr_grow(n->names, n->room * sizeof name, more * sizeof name);
        n->room = more;
    }
    n->names[n->count] =
        mr_str_of(mr_copy(name.n ? name.p : "", MR_MAX(name.n, (size_t)1)), name.n);
    mr_index_add(&n->index, hash, n->count, name_hash, n);
    return n->count++;
}

void mr_trace_names_fini(struct mr_trace_names *n)
{
    for (uint32_t i = 0; i < n->count; i++)
        mr_release(mr_unconst(n->names[i].p));
    mr_release(n->names);
    mr_index_fini(&n->index);
}

uint32_t mr_trace_local_add(struct mr_trace_local_names *l, uint32_t local,
    struct mr_trace_names *names, struct mr_str name)
{
    if (local >= l->room) {
        uint32_t more = MR_MAX(local + 1, MR_MAX(16u, l->room * 2));
        l->of = mr_grow(l->of, l->room * sizeof *l->of, more * sizeof *l->of);
        l->room = more;
    }
    uint32_t number = mr_trace_names_number(names, name);
    l->of[local] = number + 1;
    return number;
}

void mr_trace_local_clear(struct mr_trace_local_names *l)
{
    if (l->room) memset(l->of, 0, l->room * sizeof *l->of);
}
