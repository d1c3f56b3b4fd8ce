/* Checks the operators, arguments and options of all tasks, and that no other node has options.
 * Errors name the key at fault. */
#include "graph/build/check.h"

#include "base/alloc.h"
#include "graph/args.h"
#include "graph/build/builder_state.h"

#include <stdio.h>

struct check {
    const struct mr_builder *b;
    const struct mr_graph_catalogue *c;
    struct mr_graph_op_info *infos; /* by number of the operator; valid where known[] is true */
    bool *known;
    /* Only for tasks with at most 15 arguments, all positional. By number of the operator: 1 + the
     * number of arguments of the last such task that has passed. 0: no such task has passed. */
    unsigned char *good;
    uint32_t last_op; /* operator of the last task that has passed the check; `last_args` are its
                       * arguments */
    uint32_t last_args;
    struct mr_error *e;
};

static int unknown_op(const struct check *k, uint32_t node)
{
    struct mr_str op = mr_intern_text(&k->b->ops, k->b->op[node]);
    struct mr_nearest near;
    mr_nearest_init(&near, op);
    for (uint32_t i = 0; k->c->name_at; i++) {
        struct mr_str name = k->c->name_at(k->c->ctx, i);
        if (!name.n) break;
        mr_nearest_offer(&near, name);
    }
    char hint[MR_NEAREST_HINT_MAX];
    return mr_fail(k->e, MR_EINVAL, "key \"%.*s\": unknown op \"%.*s\"%s",
        MR_SHOWN(mr_builder_key(k->b, node)), MR_SHOWN(op), mr_nearest_hint(&near, hint));
}

static int wrong_count(const struct check *k, uint32_t node, uint32_t given)
{
    const struct mr_graph_op_info *info = &k->infos[k->b->op[node]];
    uint32_t least = 0, most = info->params_count;
    for (uint32_t i = 0; i < info->params_count; i++)
        if (info->params[i].required) least++;
    char want[48];
    if (info->any_positional)
        (void)snprintf(want, sizeof want, "%u or more", least);
    else if (least == most)
        (void)snprintf(want, sizeof want, "%u", most);
    else
        (void)snprintf(want, sizeof want, "%u to %u", least, most);
    bool one = !info->any_positional && most == 1 && least == 1;
    return mr_fail(k->e, MR_EINVAL, "key \"%.*s\": op \"%.*s\" takes %s argument%s, got %u",
        MR_SHOWN(mr_builder_key(k->b, node)), MR_SHOWN(mr_intern_text(&k->b->ops, k->b->op[node])),
        want, one ? "" : "s", given);
}

static int unknown_param(const struct check *k, uint32_t node, struct mr_str name)
{
    const struct mr_graph_op_info *info = &k->infos[k->b->op[node]];
    struct mr_nearest near;
    mr_nearest_init(&near, name);
    for (uint32_t i = 0; i < info->params_count; i++)
        mr_nearest_offer(&near, info->params[i].name);
    char hint[MR_NEAREST_HINT_MAX];
    return mr_fail(k->e, MR_EINVAL, "key \"%.*s\": op \"%.*s\" has no parameter \"%.*s\"%s",
        MR_SHOWN(mr_builder_key(k->b, node)), MR_SHOWN(mr_intern_text(&k->b->ops, k->b->op[node])),
        MR_SHOWN(name), mr_nearest_hint(&near, hint));
}

/* Checks the named arguments against the parameters of the operator, and reads `a` to its end. */
static int check_named(const struct check *k, uint32_t node, struct mr_args *a)
{
    const struct mr_graph_op_info *info = &k->infos[k->b->op[node]];
    uint32_t given = a->positional_count, required_missing = 0;
    for (uint32_t i = a->positional_count; i < info->params_count; i++)
        if (info->params[i].required) required_missing++;
    for (uint32_t n = 0; n < a->named_count; n++) {
        struct mr_pack_item name;
        if (mr_pack_next(&a->named, &name) || mr_pack_skip(&a->named, NULL))
            return mr_fail(k->e, MR_EFORMAT, "key \"%.*s\": malformed arguments",
                MR_SHOWN(mr_builder_key(k->b, node)));
        uint32_t at = 0;
        while (at < info->params_count && !mr_str_eq(info->params[at].name, name.bytes))
            at++;
        if (at == info->params_count) {
            if (info->any_named) continue;
            return unknown_param(k, node, name.bytes);
        }
        if (at < a->positional_count)
            return mr_fail(k->e, MR_EINVAL,
                "key \"%.*s\": op \"%.*s\": parameter \"%.*s\" is given by position and by name",
                MR_SHOWN(mr_builder_key(k->b, node)),
                MR_SHOWN(mr_intern_text(&k->b->ops, k->b->op[node])), MR_SHOWN(name.bytes));
        if (info->params[at].required) required_missing--;
        given++;
    }
    return required_missing ? wrong_count(k, node, given) : MR_OK;
}

static int check_task(struct check *k, uint32_t node)
{
    const struct mr_builder *b = k->b;
    uint16_t op = b->op[node];
    if (op == k->last_op && b->args_of[node] == k->last_args)
        return MR_OK; /* a task with this operator and these arguments has passed */
    struct mr_str pack = mr_builder_args_text(b, b->args_of[node]);
    if (pack.n && (pack.p[0] & 0xf0) == 0x90 && k->good[op] == (pack.p[0] & 0x0f) + 1) return MR_OK;
    struct mr_args a;
    int err = mr_args_open(pack, &a, k->e);
    if (err) return mr_fail_within(k->e, err, "key", mr_builder_key(b, node));
    if (!k->c) return MR_OK;
    if (!k->known[op]) {
        if (!k->c->find(k->c->ctx, mr_intern_text(&b->ops, op), &k->infos[op]))
            return unknown_op(k, node);
        k->known[op] = true;
    }
    k->last_op = op;
    k->last_args = b->args_of[node];
    const struct mr_graph_op_info *info = &k->infos[op];
    if (a.positional_count > info->params_count && !info->any_positional)
        return wrong_count(k, node, a.positional_count + a.named_count);
    if (a.named_count) return check_named(k, node, &a);
    if (a.positional_count < info->params_count)
        for (uint32_t i = a.positional_count; i < info->params_count; i++)
            if (info->params[i].required) return wrong_count(k, node, a.positional_count);
    if (a.positional_count < 16) k->good[op] = (unsigned char)(a.positional_count + 1);
    return MR_OK;
}

static int check_all(struct check *k)
{
    const struct mr_builder *b = k->b;
    for (uint32_t v = 0; v < b->keys.count; v++) {
        if (b->option_of && b->option_of[v] != MR_NODE_NONE && b->kind[v] != MR_NODE_TASK + 1)
            return mr_fail(k->e, MR_EINVAL, "key \"%.*s\" has options, but is no task",
                MR_SHOWN(mr_builder_key(b, v)));
        if (b->kind[v] != MR_NODE_TASK + 1) continue;
        int err = check_task(k, v);
        if (err) return err;
    }
    return MR_OK;
}

int mr_builder_check(
    const struct mr_builder *b, const struct mr_graph_catalogue *c, struct mr_error *e)
{
    struct check k = {.b = b,
        .c = c,
        .infos = mr_alloc_array(b->ops.count, sizeof *k.infos),
        .known = mr_alloc_array(b->ops.count, sizeof *k.known),
        .good = mr_alloc_array(b->ops.count, sizeof *k.good),
        .last_op = MR_NODE_NONE,
        .e = e};
    int err = check_all(&k);
    mr_release(k.infos);
    mr_release(k.known);
    mr_release(k.good);
    return err;
}
