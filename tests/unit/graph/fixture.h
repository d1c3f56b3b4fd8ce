/* A small catalogue of operators, and a fake thread pool that runs everything on the calling
 * thread. */
#pragma once

#include "base/alloc.h"
#include "base/pack.h"
#include "graph/explain.h"
#include "graph/json/json.h"

struct fixture_op {
    const char *name;
    struct mr_graph_param params[3];
    uint32_t params_count;
    bool any_positional;
    bool any_named;
};

static const struct fixture_op fixture_ops[] = {
    {"identity", {{MR_STR_INIT("value"), true}}, 1, false, false},
    {"inc", {{MR_STR_INIT("x"), true}}, 1, false, false},
    {"add", {{MR_STR_INIT("a"), true}, {MR_STR_INIT("b"), true}}, 2, false, false},
    {"round", {{MR_STR_INIT("x"), true}, {MR_STR_INIT("digits"), false}}, 2, false, false},
    {"sum", {{{0}, false}}, 0, true, false},
    {"any", {{{0}, false}}, 0, true, true},
};

static inline bool fixture_find(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    (void)ctx;
    for (size_t i = 0; i < MR_ARRAY_LEN(fixture_ops); i++) {
        const struct fixture_op *o = &fixture_ops[i];
        if (!mr_str_eq(op, mr_str(o->name))) continue;
        *out =
            (struct mr_graph_op_info){o->params, o->params_count, o->any_positional, o->any_named};
        return true;
    }
    return false;
}

static inline struct mr_str fixture_name_at(const void *ctx, uint32_t i)
{
    (void)ctx;
    if (i >= MR_ARRAY_LEN(fixture_ops)) return (struct mr_str){0};
    return mr_str(fixture_ops[i].name);
}

static const struct mr_graph_catalogue fixture_catalogue = {fixture_find, fixture_name_at, NULL};

static inline bool fixture_key_is(const struct mr_graph *g, uint32_t node, const char *key)
{
    return mr_str_eq(mr_graph_key(g, node), mr_str(key));
}

/* Runs the items on the calling thread as if for three workers, the last item first. The result
 * must not depend on the order of items. */
static inline void fixture_run(
    void *ctx, void (*work)(void *arg, uint32_t item, uint32_t worker), void *arg, uint32_t count)
{
    (void)ctx;
    while (count-- > 0)
        work(arg, count, count % 3);
}

static const struct mr_graph_parallel fixture_parallel = {3, fixture_run, NULL};
