/* Makes a graph of a builder's nodes. A node without a definition becomes an alias of another job's
 * key, or is an error (build.h). Then the tasks are checked, and the nodes that no target needs
 * are dropped (culled). The other nodes are ordered, and copied into the graph, whose arrays have
 * one element for each node. */
#include "graph/build/build.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "graph/build/builder_state.h"
#include "graph/build/check.h"
#include "graph/build/unroll.h"
#include "graph/order.h"
#include "graph/parallel.h"

/* ---- undefined keys -------------------------------------------------------------------------- */

static const char *nearest_key(
    const struct mr_builder *b, uint32_t node, char hint[MR_NEAREST_HINT_MAX])
{
    struct mr_nearest near;
    mr_nearest_init(&near, mr_builder_key(b, node));
    for (uint32_t v = 0; v < b->keys.count; v++)
        if (b->kind[v] != MR_NODE_UNDEFINED) mr_nearest_offer(&near, mr_builder_key(b, v));
    return mr_nearest_hint(&near, hint);
}

static int undefined(const struct mr_builder *b, uint32_t node, struct mr_error *e)
{
    char hint[MR_NEAREST_HINT_MAX];
    (void)nearest_key(b, node, hint);
    struct mr_str key = mr_builder_key(b, node);
    for (uint32_t v = 0; v < b->keys.count; v++)
        for (uint32_t i = 0; i < b->input_count[v]; i++)
            if (b->inputs[b->input_at[v] + i] == node)
                return mr_fail(e, MR_EINVAL,
                    "key \"%.*s\" refers to \"%.*s\", which is no key of this graph%s",
                    MR_SHOWN(mr_builder_key(b, v)), MR_SHOWN(key), hint);
    return mr_fail(e, MR_EINVAL, "target \"%.*s\" is no key of this graph%s", MR_SHOWN(key), hint);
}

static int resolve(struct mr_builder *b, struct mr_error *e)
{
    if (!memchr(b->kind, MR_NODE_UNDEFINED, b->keys.count)) return MR_OK;
    for (uint32_t v = 0; v < b->keys.count; v++) {
        if (b->kind[v] != MR_NODE_UNDEFINED) continue;
        if (!b->job.name_space.n) return undefined(b, v, e);
        int err = mr_builder_alias(b, v, e);
        if (err) return err;
    }
    return MR_OK;
}

/* ---- targets --------------------------------------------------------------------------------- */

static void drop_repeated_targets(struct mr_builder *b)
{
    bool is_ascending = true;
    for (uint32_t i = 1; i < b->targets_count; i++)
        is_ascending &= b->targets[i - 1] < b->targets[i];
    if (is_ascending) return;
    unsigned char *seen = mr_alloc(b->keys.count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->targets_count; i++) {
        uint32_t t = b->targets[i];
        if (!seen[t]) b->targets[n++] = t;
        seen[t] = 1;
    }
    b->targets_count = n;
    mr_release(seen);
}

static int choose_targets(struct mr_builder *b, struct mr_error *e)
{
    if (b->targets_count) {
        drop_repeated_targets(b);
        return MR_OK;
    }
    unsigned char *used = mr_alloc(b->keys.count);
    for (uint32_t i = 0; i < b->inputs_count; i++)
        used[b->inputs[i]] = 1;
    mr_builder_mark_bodies(b, used);
    int err = MR_OK;
    for (uint32_t v = 0; v < b->keys.count && !err; v++)
        if (!used[v]) err = mr_builder_target(b, v, e);
    mr_release(used);
    return err;
}

static int cycle_error(const struct mr_builder *b, const struct mr_order *o, struct mr_error *e)
{
    struct mr_buf text;
    mr_buf_init(&text, MR_ERROR_TEXT_MAX / 2);
    uint32_t first = 0, shown = MR_MIN(o->cycle_count, 8u);
    for (uint32_t i = 1; i < o->cycle_count; i++)
        if (o->cycle[i] < o->cycle[first]) first = i;
    for (uint32_t i = 0; i <= shown; i++) {
        if (i == shown && shown < o->cycle_count)
            mr_buf_printf(&text, "… (%u keys) -> ", o->cycle_count);
        struct mr_str key = mr_builder_key(b, o->cycle[(first + i % shown) % o->cycle_count]);
        mr_buf_printf(
            &text, "%.*s%s", (int)MR_MIN(key.n, (size_t)48), key.p, i < shown ? " -> " : "");
    }
    int err = mr_fail(e, MR_EINVAL, "the graph has a cycle: %.*s", (int)text.n, (char *)text.p);
    mr_buf_fini(&text);
    return err;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void gather_keys(const struct mr_builder *b, const struct mr_order *o, struct mr_graph *g)
{
    size_t kept_bytes = 0;
    for (uint32_t i = 0; i < o->kept; i++)
        kept_bytes += mr_builder_key(b, o->order[i]).n;
    g->keys = mr_alloc(kept_bytes);
    g->key_at = mr_alloc_array((size_t)o->kept + 1, sizeof *g->key_at);
    uint32_t at = 0;
    for (uint32_t i = 0; i < o->kept; i++) {
        struct mr_str key = mr_builder_key(b, o->order[i]);
        memcpy(g->keys + at, key.p, key.n);
        at += (uint32_t)key.n;
        g->key_at[i + 1] = at;
    }
    g->culled_keys = mr_alloc(b->keys.text_bytes - kept_bytes);
    g->culled_key_at = mr_alloc_array((size_t)g->culled_count + 1, sizeof *g->culled_key_at);
    at = 0;
    for (uint32_t v = 0, i = 0; v < b->keys.count && i < g->culled_count; v++) {
        if (o->rank[v] != MR_NODE_NONE) continue;
        struct mr_str key = mr_builder_key(b, v);
        memcpy(g->culled_keys + at, key.p, key.n);
        at += (uint32_t)key.n;
        g->culled_key_at[++i] = at;
    }
}

/* Copies the arguments of the kept nodes in the order of their first use. Nodes may share
 * arguments. */
static void gather_args(const struct mr_builder *b, const struct mr_order *o, struct mr_graph *g)
{
    uint32_t *number = mr_alloc_array((size_t)b->args_count + 1, sizeof *number);
    size_t bytes = 0;
    g->args_of = mr_alloc_array(o->kept, sizeof *g->args_of);
    for (uint32_t i = 0; i < o->kept; i++) {
        uint32_t a = b->args_of[o->order[i]];
        if (!number[a]) {
            number[a] = ++g->args_count;
            bytes += b->args_at[a + 1] - b->args_at[a];
        }
        g->args_of[i] = number[a] - 1;
    }
    g->args = mr_alloc(bytes);
    g->args_at = mr_alloc_array((size_t)g->args_count + 1, sizeof *g->args_at);
    uint32_t done = 0;
    for (uint32_t i = 0; i < o->kept; i++) {
        if (g->args_of[i] != done) continue;
        struct mr_str args = mr_builder_args_text(b, b->args_of[o->order[i]]);
        memcpy(g->args + g->args_at[done], args.p, args.n);
        g->args_at[done + 1] = g->args_at[done] + (uint32_t)args.n;
        done++;
    }
    mr_assert(done == g->args_count);
    mr_release(number);
}

static void gather_inputs(const struct mr_builder *b, const struct mr_order *o, struct mr_graph *g)
{
    size_t total = 0;
    for (uint32_t i = 0; i < o->kept; i++)
        total += b->input_count[o->order[i]];
    g->inputs = mr_alloc_array(total, sizeof *g->inputs);
    g->input_at = mr_alloc_array((size_t)o->kept + 1, sizeof *g->input_at);
    uint32_t at = 0;
    for (uint32_t i = 0; i < o->kept; i++) {
        uint32_t v = o->order[i];
        for (uint32_t j = 0; j < b->input_count[v]; j++)
            g->inputs[at++] = o->rank[b->inputs[b->input_at[v] + j]];
        g->input_at[i + 1] = at;
    }
}

/* Copies the kinds of the kept nodes, and their operators and options in the order of the first
 * use. */
static void gather_tasks(struct mr_builder *b, const struct mr_order *o, struct mr_graph *g)
{
    uint32_t *op_number = mr_alloc_array((size_t)b->ops.count + 1, sizeof *op_number);
    uint32_t *set_number = mr_alloc_array((size_t)b->options_count + 1, sizeof *set_number);
    g->kind = mr_alloc(o->kept);
    g->op = mr_alloc_array(o->kept, sizeof *g->op);
    g->ops = mr_alloc_array((size_t)b->ops.count + 1, sizeof *g->ops);
    g->options = mr_alloc_array((size_t)b->options_count + 1, sizeof *g->options);
    if (b->option_of) {
        g->option_of = mr_alloc_array(o->kept, sizeof *g->option_of);
        memset(g->option_of, 0xff, o->kept * sizeof *g->option_of);
    }
    for (uint32_t i = 0; i < o->kept; i++) {
        uint32_t v = o->order[i];
        g->kind[i] = (unsigned char)mr_builder_kind(b, v);
        if (g->kind[i] != MR_NODE_TASK) continue;
        g->tasks_count++;
        uint32_t op = b->op[v];
        if (!op_number[op]) {
            g->ops[g->ops_count] = mr_text_arena_copy(&b->text, mr_intern_text(&b->ops, op));
            op_number[op] = ++g->ops_count;
        }
        g->op[i] = (uint16_t)(op_number[op] - 1);
        uint32_t set = b->option_of ? b->option_of[v] : MR_NODE_NONE;
        if (set == MR_NODE_NONE) continue;
        if (!set_number[set]) {
            g->options[g->options_count] = b->options[set];
            set_number[set] = ++g->options_count;
        }
        g->option_of[i] = set_number[set] - 1;
    }
    if (!g->options_count) {
        mr_release(g->option_of);
        g->option_of = NULL;
    }
    mr_release(op_number);
    mr_release(set_number);
}

struct gathering {
    struct mr_builder *b;
    const struct mr_order *o;
    struct mr_graph *g;
};

/* Copies one of the four parts of the columns; `part` is 0 to 3. The parts are independent, so four
 * threads may copy them. */
static void gather_part(void *ctx, uint32_t part, uint32_t worker)
{
    const struct gathering *x = ctx;
    (void)worker;
    switch (part) {
    case 0: gather_inputs(x->b, x->o, x->g); break;
    case 1: gather_keys(x->b, x->o, x->g); break;
    case 2: gather_args(x->b, x->o, x->g); break;
    default: gather_tasks(x->b, x->o, x->g); break;
    }
}

static struct mr_graph *gather(struct mr_builder *b, const struct mr_order *o)
{
    struct mr_graph *g = mr_alloc(sizeof *g);
    g->nodes_count = o->kept;
    g->defined_count = b->keys.count;
    g->culled_count = g->defined_count - g->nodes_count;
    struct gathering x = {b, o, g};
    if (b->parallel)
        b->parallel->run(b->parallel->ctx, gather_part, &x, 4);
    else
        for (uint32_t part = 0; part < 4; part++)
            gather_part(&x, part, 0);
    mr_builder_gather_loops(b, o->rank, g);
    g->targets = mr_alloc_array(b->targets_count, sizeof *g->targets);
    g->targets_count = b->targets_count;
    for (uint32_t i = 0; i < b->targets_count; i++)
        g->targets[i] = o->rank[b->targets[i]];
    return g;
}

/* ---- columns that are in canonical order already --------------------------------------------- */

/* True: the nodes are independent tasks, all of them are targets, and the targets and the arguments
 * are in the order of the nodes. This order is then the canonical one (graph/graph.h). False: one
 * of these conditions does not hold. */
static bool is_in_order(const struct mr_builder *b)
{
    uint32_t n = b->keys.count, args = 0;
    if (b->inputs_count || b->loops_count || b->option_of || b->targets_count != n) return false;
    for (uint32_t v = 0; v < n; v++) {
        if (b->targets[v] != v || b->args_of[v] > args) return false;
        args += b->args_of[v] == args;
    }
    return args == b->args_count;
}

/* Takes a growing array from its owner and shrinks it to `count` items. */
#define TAKE(p, count)                                                                             \
    mr_grow(MR_STEAL(p), (size_t)(count) * sizeof *(p), (size_t)(count) * sizeof *(p))

/* Makes a graph of the builder's columns without copying them. */
static struct mr_graph *take(struct mr_builder *b)
{
    struct mr_graph *g = mr_alloc(sizeof *g);
    uint32_t n = b->keys.count;
    g->nodes_count = g->defined_count = n;
    g->keys = TAKE(b->keys.text, b->keys.text_bytes);
    g->key_at = TAKE(b->keys.at, (size_t)n + 1);
    g->culled_keys = mr_alloc(0);
    g->culled_key_at = mr_alloc_array(1, sizeof *g->culled_key_at);
    g->args_count = b->args_count;
    g->args_of = TAKE(b->args_of, n);
    g->args_at = TAKE(b->args_at, (size_t)b->args_count + 1);
    g->args = TAKE(b->args.p, b->args.n);
    g->inputs = mr_alloc(0);
    g->input_at = mr_alloc_array((size_t)n + 1, sizeof *g->input_at);
    g->targets_count = b->targets_count;
    g->targets = TAKE(b->targets, n);
    g->kind = TAKE(b->kind, n);
    g->op = TAKE(b->op, n);
    uint32_t *op_number = mr_alloc_array((size_t)b->ops.count + 1, sizeof *op_number);
    g->ops = mr_alloc_array((size_t)b->ops.count + 1, sizeof *g->ops);
    g->options = mr_alloc_array(1, sizeof *g->options);
    for (uint32_t v = 0; v < n; v++) {
        bool is_task = --g->kind[v] == MR_NODE_TASK;
        uint32_t op = g->op[v];
        g->op[v] = 0;
        if (!is_task) continue;
        g->tasks_count++;
        if (!op_number[op]) {
            g->ops[g->ops_count] = mr_text_arena_copy(&b->text, mr_intern_text(&b->ops, op));
            op_number[op] = ++g->ops_count;
        }
        g->op[v] = (uint16_t)(op_number[op] - 1);
    }
    mr_release(op_number);
    return g;
}

/* Culls the nodes that no target needs and orders the others. NULL: the nodes have a cycle. */
static struct mr_graph *put_in_order(struct mr_builder *b, struct mr_error *e)
{
    if (is_in_order(b)) return take(b);
    struct mr_order_graph in = {.count = b->keys.count,
        .input_at = b->input_at,
        .input_count = b->input_count,
        .inputs = b->inputs,
        .inputs_count = b->inputs_count,
        .targets = b->targets,
        .targets_count = b->targets_count};
    struct mr_order o;
    struct mr_graph *g = NULL;
    if (mr_order_make(&in, &o))
        g = gather(b, &o);
    else
        (void)cycle_error(b, &o, e);
    mr_order_fini(&o);
    return g;
}

static int build(struct mr_builder *b, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    mr_assert(!b->open_count);
    if (!b->keys.count) return mr_fail(e, MR_EINVAL, "the graph is empty: it has no tasks");
    int err = resolve(b, e);
    if (!err) err = mr_builder_check(b, catalogue, e);
    if (!err) err = choose_targets(b, e);
    if (!err) err = mr_builder_check_loops(b, e);
    if (err) return err;
    struct mr_graph *g = put_in_order(b, e);
    if (!g) return MR_EINVAL; /* a cycle */
    g->job = b->job;
    g->text = b->text;
    b->text = (struct mr_text_arena){0};
    mr_graph_link(g);
    if (mr_graph_wants_hashes(g)) mr_graph_rehash(g);
    *out = g;
    return MR_OK;
}

int mr_graph_build(struct mr_builder **b, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    int err = build(*b, catalogue, out, e);
    mr_builder_free(b);
    return err;
}
