/* Finds the node of a key, and tells why a key is in the graph or not (explain.h). */
#include "graph/explain.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "graph/suggest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- keys ------------------------------------------------------------------------------------ */

/* Returns the key of an item of the index. Items are the kept nodes, then the culled keys. */
static struct mr_str item_key(const struct mr_graph *g, uint32_t item)
{
    if (item < g->nodes_count) return mr_graph_key(g, item);
    uint32_t i = item - g->nodes_count;
    return mr_str_of(
        g->culled_keys + g->culled_key_at[i], g->culled_key_at[i + 1] - g->culled_key_at[i]);
}

static uint64_t hash_of(struct mr_str key)
{
    return XXH3_64bits(key.p, key.n);
}

static bool item_eq(const void *ctx, uint32_t item, const void *key)
{
    return mr_str_eq(item_key(ctx, item), *(const struct mr_str *)key);
}

static uint32_t find_item(struct mr_graph *g, struct mr_str key)
{
    if (!g->has_by_key) {
        mr_index_init(&g->by_key, g->defined_count);
        for (uint32_t i = 0; i < g->defined_count; i++)
            mr_index_add(&g->by_key, hash_of(item_key(g, i)), i, NULL, NULL);
        g->has_by_key = true;
    }
    return mr_index_find(&g->by_key, hash_of(key), item_eq, g, &key);
}

uint32_t mr_graph_find(struct mr_graph *g, struct mr_str key)
{
    uint32_t item = find_item(g, key);
    return item < g->nodes_count ? item : MR_NODE_NONE;
}

bool mr_graph_was_culled(struct mr_graph *g, struct mr_str key)
{
    uint32_t item = find_item(g, key);
    return item != MR_INDEX_NONE && item >= g->nodes_count;
}

/* ---- what needs what ------------------------------------------------------------------------- */

static void mark(unsigned char *bits, uint32_t i)
{
    bits[i / 8] = (unsigned char)(bits[i / 8] | 1u << i % 8);
}

static bool is_marked(const unsigned char *bits, uint32_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

/* Every kept node is a target or has a dependent. So a walk from each node to its first dependent
 * ends at a target. */
uint32_t mr_graph_path_to_target(
    const struct mr_graph *g, uint32_t node, uint32_t *nodes, uint32_t nodes_max)
{
    uint32_t n = 0;
    unsigned char *targets = mr_alloc((size_t)g->nodes_count / 8 + 1);
    for (uint32_t i = 0; i < g->targets_count; i++)
        mark(targets, g->targets[i]);
    while (n < nodes_max) {
        nodes[n++] = node;
        uint32_t count = 0;
        const uint32_t *dependents = mr_graph_dependents(g, node, &count);
        if (is_marked(targets, node) || !count) break;
        node = dependents[0];
    }
    mr_release(targets);
    return n;
}

/* ---- in words -------------------------------------------------------------------------------- */

static void explain_kept(const struct mr_graph *g, uint32_t node, struct mr_buf *out)
{
    uint32_t path[64];
    uint32_t n = mr_graph_path_to_target(g, node, path, MR_ARRAY_LEN(path));
    struct mr_str key = mr_graph_key(g, node), last = mr_graph_key(g, path[n - 1]);
    if (n == 1) {
        mr_buf_printf(out, "\"%.*s\" is a target", MR_SHOWN(key));
        return;
    }
    if (n == MR_ARRAY_LEN(path)) {
        mr_buf_printf(out, "\"%.*s\" feeds a target through \"%.*s\" and more than %zu other tasks",
            MR_SHOWN(key), MR_SHOWN(mr_graph_key(g, path[1])), MR_ARRAY_LEN(path));
        return;
    }
    mr_buf_printf(out, "\"%.*s\" is needed by the target \"%.*s\"", MR_SHOWN(key), MR_SHOWN(last));
    if (n > 2) mr_buf_printf(out, " through \"%.*s\"", MR_SHOWN(mr_graph_key(g, path[1])));
    if (n > 3) mr_buf_printf(out, " and %u more", n - 3);
}

void mr_graph_explain_key(struct mr_graph *g, struct mr_str key, struct mr_buf *out)
{
    uint32_t item = find_item(g, key);
    if (item == MR_INDEX_NONE) {
        struct mr_nearest near;
        mr_nearest_init(&near, key);
        for (uint32_t i = 0; i < g->defined_count; i++)
            mr_nearest_offer(&near, item_key(g, i));
        char hint[MR_NEAREST_HINT_MAX];
        mr_buf_printf(
            out, "\"%.*s\" is no key of this graph%s", MR_SHOWN(key), mr_nearest_hint(&near, hint));
        return;
    }
    if (item < g->nodes_count) {
        explain_kept(g, item, out);
        return;
    }
    mr_buf_printf(out,
        "\"%.*s\" was submitted, but no target needs it: it will never run (%u of %u keys were "
        "left out for this reason)",
        MR_SHOWN(key), g->culled_count, g->defined_count);
}
