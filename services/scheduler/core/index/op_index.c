/* Operators by name. The number of a name does not change while the process runs. */
#include "services/scheduler/core/index/op_index.h"

#include "base/alloc.h"
#include "services/scheduler/core/state/lookup.h"

static bool op_eq(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_sched *s = ctx;
    return mr_str_eq(s->ops[item].name, *(const struct mr_str *)key);
}

static uint64_t op_hash(const void *ctx, uint32_t item)
{
    return text_hash(((const struct mr_sched *)ctx)->ops[item].name);
}

uint32_t mr_sched__op(struct mr_sched *s, struct mr_str name)
{
    uint64_t hash = text_hash(name);
    uint32_t op = mr_index_find(&s->op_list.index, hash, op_eq, s, &name);
    if (op != MR_INDEX_NONE) return op;
    if (s->op_list.count + 1 >= s->config.ops_max) return 0;
    op = ++s->op_list.count;
    s->ops[op].name = mr_str_of(name.n ? mr_copy(name.p, name.n) : NULL, name.n);
    struct class *c = &s->classes[op];
    *c = (struct class){.op = op,
        .users = 1,
        .parked_head = NONE,
        .parked_tail = NONE,
        .active_at = NONE,
        .any_worker = true};
    mr_index_add(&s->op_list.index, hash, op, op_hash, s);
    return op;
}
