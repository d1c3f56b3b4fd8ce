/* Reads, links, hashes and checks a job's graph in memory (graph.h). */
#include "graph/graph.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void mr_graph_free(struct mr_graph **gp)
{
    struct mr_graph *g = MR_STEAL(*gp);
    if (!g) return;
    void *columns[] = {g->kind, g->op, g->key_at, g->keys, g->args_of, g->args_at, g->args,
        g->input_at, g->inputs, g->dependent_at, g->dependents, g->hash, g->option_of, g->options,
        g->ops, g->targets, g->culled_key_at, g->culled_keys, g->slot_of, g->round_of};
    for (size_t i = 0; i < MR_ARRAY_LEN(columns); i++)
        mr_release(columns[i]);
    if (g->has_by_key) mr_index_fini(&g->by_key);
    mr_text_arena_fini(&g->text);
    mr_release(g);
}

struct mr_str mr_graph_key(const struct mr_graph *g, uint32_t node)
{
    mr_assert(node < g->nodes_count);
    return mr_str_of(g->keys + g->key_at[node], g->key_at[node + 1] - g->key_at[node]);
}

struct mr_str mr_graph_op(const struct mr_graph *g, uint32_t node)
{
    mr_assert(node < g->nodes_count);
    if (g->kind[node] != MR_NODE_TASK) return (struct mr_str){0};
    return g->ops[g->op[node]];
}

static struct mr_str args_text(const struct mr_graph *g, uint32_t args)
{
    return mr_str_of(g->args + g->args_at[args], g->args_at[args + 1] - g->args_at[args]);
}

bool mr_graph_is_pure(const struct mr_graph *g, uint32_t node)
{
    const struct mr_task_options *o = mr_graph_options(g, node);
    return !o || !(o->given & MR_OPTION_PURE) || o->pure;
}

static struct mr_pack_item first_item(const struct mr_graph *g, uint32_t node)
{
    struct mr_pack_reader r = mr_pack_read(mr_graph_args(g, node));
    struct mr_pack_item item;
    int err = mr_pack_next(&r, &item);
    mr_assert(!err);
    return item;
}

mr_object_id mr_graph_object(const struct mr_graph *g, uint32_t node)
{
    mr_assert(g->kind[node] == MR_NODE_OBJECT);
    mr_object_id id = {0};
    int err = mr_object_id_from_bytes(first_item(g, node).bytes, &id);
    mr_assert(!err);
    return id;
}

struct mr_str mr_graph_text(const struct mr_graph *g, uint32_t node)
{
    mr_assert(g->kind[node] == MR_NODE_NAME || g->kind[node] == MR_NODE_ALIAS);
    return first_item(g, node).bytes;
}

void mr_graph_link(struct mr_graph *g)
{
    uint32_t n = g->nodes_count, edges = g->input_at[n];
    g->dependent_at = mr_alloc_array((size_t)n + 1, sizeof *g->dependent_at);
    g->dependents = mr_alloc_array(edges, sizeof *g->dependents);
    /* without edges nothing is written, so the kernel need not commit the pages */
    if (!edges) return;
    for (uint32_t i = 0; i < edges; i++)
        g->dependent_at[g->inputs[i]]++;
    uint32_t at = 0;
    /* Sets `dependent_at` to the end of each node's range in `dependents`. The next loop fills each
     * range from its end, and moves `dependent_at` to the start of the range. */
    for (uint32_t v = 0; v <= n; v++) {
        at += g->dependent_at[v];
        g->dependent_at[v] = at;
    }
    for (uint32_t v = n; v-- > 0;)
        for (uint32_t i = g->input_at[v + 1]; i-- > g->input_at[v];)
            g->dependents[--g->dependent_at[g->inputs[i]]] = v;
}

/* ---- definitions ----------------------------------------------------------------------------- */

static mr_graph_hash hash_bytes(const void *p, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(p, n);
    return (mr_graph_hash){h.high64, h.low64};
}

/* Hashes the definition of a task: its operator, its arguments, the definitions of its inputs (in
 * the order in which the arguments number them), and whether the task is pure. No other option
 * changes the task's value. */
static mr_graph_hash hash_task(const struct mr_graph *g, uint32_t node, mr_graph_hash op,
    mr_graph_hash args, mr_graph_hash *scratch)
{
    uint32_t count = 0;
    const uint32_t *inputs = mr_graph_inputs(g, node, &count);
    scratch[0] = (mr_graph_hash){MR_NODE_TASK, mr_graph_is_pure(g, node)};
    scratch[1] = op;
    scratch[2] = args;
    for (uint32_t i = 0; i < count; i++)
        scratch[3 + i] = g->hash[inputs[i]];
    return hash_bytes(scratch, (3 + (size_t)count) * sizeof *scratch);
}

static uint32_t most_inputs(const struct mr_graph *g)
{
    uint32_t most = 0;
    for (uint32_t v = 0; v < g->nodes_count; v++)
        most = MR_MAX(most, g->input_at[v + 1] - g->input_at[v]);
    return most;
}

static void hash_tasks(struct mr_graph *g, bool outside_too)
{
    mr_graph_hash *scratch = mr_alloc_array((size_t)most_inputs(g) + 3, sizeof *scratch);
    mr_graph_hash *ops = mr_alloc_array((size_t)g->ops_count + 1, sizeof *ops);
    for (uint32_t i = 0; i < g->ops_count; i++)
        ops[i] = hash_bytes(g->ops[i].p, g->ops[i].n);
    /* Index of the arguments whose hash is `args`. Consecutive tasks often share their
     * arguments. */
    uint32_t hashed = MR_NODE_NONE;
    mr_graph_hash args = {0};
    for (uint32_t v = 0; v < g->nodes_count; v++) {
        enum mr_node_kind kind = (enum mr_node_kind)g->kind[v];
        if (kind != MR_NODE_TASK && !outside_too) continue;
        if (g->args_of[v] != hashed) {
            struct mr_str text = args_text(g, g->args_of[v]);
            args = hash_bytes(text.p, text.n);
            hashed = g->args_of[v];
        }
        if (kind == MR_NODE_TASK) {
            g->hash[v] = hash_task(g, v, ops[g->op[v]], args, scratch);
        } else {
            mr_graph_hash leaf[2] = {{(uint64_t)kind, 0}, args};
            g->hash[v] = hash_bytes(leaf, sizeof leaf);
        }
    }
    mr_release(ops);
    mr_release(scratch);
}

void mr_graph_rehash(struct mr_graph *g)
{
    bool fresh = !g->hash;
    if (fresh) g->hash = mr_alloc_array(g->nodes_count, sizeof *g->hash);
    hash_tasks(g, fresh);
}

void mr_graph_set_hash(struct mr_graph *g, uint32_t node, mr_graph_hash hash)
{
    mr_assert(node < g->nodes_count && g->hash);
    mr_assert(g->kind[node] != MR_NODE_TASK);
    g->hash[node] = hash;
}

bool mr_graph_wants_hashes(const struct mr_graph *g)
{
    bool wants = g->job.name_space.n > 0;
    for (uint32_t i = 0; i < g->options_count && !wants; i++)
        wants = g->options[i].persist || g->options[i].persist_name.n;
    return wants;
}

/* ---- size and invariants --------------------------------------------------------------------- */

size_t mr_graph_bytes_held(const struct mr_graph *g)
{
    size_t n = g->nodes_count, edges = n ? g->input_at[n] : 0;
    size_t bytes = sizeof *g + g->text.bytes;
    bytes += n * (sizeof *g->kind + sizeof *g->op + sizeof *g->key_at + sizeof *g->args_of +
                     sizeof *g->input_at + sizeof *g->dependent_at);
    bytes += g->key_at[n] + edges * (sizeof *g->inputs + sizeof *g->dependents);
    bytes += g->args_at[g->args_count] + (size_t)g->args_count * sizeof *g->args_at;
    if (g->hash) bytes += n * sizeof *g->hash;
    if (g->slot_of) bytes += n * (sizeof *g->slot_of + sizeof *g->round_of);
    if (g->option_of) bytes += n * sizeof *g->option_of;
    bytes += g->options_count * sizeof *g->options + g->ops_count * sizeof *g->ops;
    bytes += g->targets_count * sizeof *g->targets;
    bytes += g->culled_count * sizeof *g->culled_key_at + g->culled_key_at[g->culled_count];
    if (g->has_by_key) bytes += ((size_t)g->by_key.mask + 1) * sizeof *g->by_key.slots;
    return bytes;
}

static void check_node(const struct mr_graph *g, uint32_t v)
{
    mr_assert(g->key_at[v] < g->key_at[v + 1]);
    mr_assert(g->args_of[v] < g->args_count);
    mr_assert(g->kind[v] <= MR_NODE_ALIAS);
    uint32_t count = 0;
    const uint32_t *inputs = mr_graph_inputs(g, v, &count);
    for (uint32_t i = 0; i < count; i++)
        mr_assert(inputs[i] < v);
    if (g->kind[v] == MR_NODE_TASK)
        mr_assert(g->op[v] < g->ops_count);
    else
        mr_assert(!count);
    const uint32_t *dependents = mr_graph_dependents(g, v, &count);
    for (uint32_t i = 0; i < count; i++) {
        mr_assert(dependents[i] > v && dependents[i] < g->nodes_count);
        mr_assert(!i || dependents[i - 1] < dependents[i]);
    }
}

void mr_graph_check(const struct mr_graph *g)
{
    mr_assert(g->nodes_count + g->culled_count == g->defined_count);
    uint32_t tasks = 0;
    for (uint32_t v = 0; v < g->nodes_count; v++) {
        check_node(g, v);
        tasks += g->kind[v] == MR_NODE_TASK;
    }
    mr_assert(tasks == g->tasks_count);
    mr_assert(g->input_at[g->nodes_count] == g->dependent_at[g->nodes_count]);
    for (uint32_t i = 0; i < g->targets_count; i++)
        mr_assert(g->targets[i] < g->nodes_count);
}
