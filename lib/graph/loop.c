/* Finds, writes, reads and checks the loops of a graph (loop.h). */
#include "graph/loop.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/utf8.h"
#include "graph/columns.h"

uint32_t mr_graph_loop_of(const struct mr_graph *g, uint32_t node)
{
    if (!g->slot_of || g->slot_of[node] == MR_NODE_NONE) return MR_NODE_NONE;
    struct mr_str key = mr_graph_key(g, node);
    for (uint32_t i = 0; i < g->loops_count; i++) {
        struct mr_str name = g->loops[i].name;
        if (key.n > name.n && key.p[name.n] == '[' && !memcmp(key.p, name.p, name.n)) return i;
    }
    return MR_NODE_NONE;
}

uint32_t mr_graph_loop_tail(const struct mr_graph *g, uint32_t loop, uint32_t round)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < g->nodes_count; v++)
        if (g->slot_of[v] != MR_NODE_NONE && g->round_of[v] > round)
            count += mr_graph_loop_of(g, v) == loop;
    return count;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void mr_graph_loops_write(const struct mr_graph *g, struct mr_buf *out)
{
    for (uint32_t i = 0; i < g->loops_count; i++) {
        const struct mr_graph_loop *l = &g->loops[i];
        const uint32_t head[3] = {l->rounds, l->exits_count, (uint32_t)l->name.n};
        mr_buf_add(out, head, sizeof head);
        mr_buf_add(out, l->until, (size_t)(l->rounds - 1) * 4);
        mr_buf_add(out, l->exits, (size_t)l->exits_count * 4);
        mr_buf_add_str(out, l->name);
    }
}

static int bad(struct mr_error *e, const char *what)
{
    return mr_fail(e, MR_EFORMAT, "bytes of a graph: %s", what);
}

static bool is_round(const struct mr_graph *g, uint32_t node, uint32_t loop, uint32_t round)
{
    return node < g->nodes_count && g->kind[node] == MR_NODE_TASK &&
           mr_graph_loop_of(g, node) == loop && g->round_of[node] == round;
}

static int check_exit(const struct mr_graph *g, uint32_t loop, uint32_t exit, struct mr_error *e)
{
    const struct mr_graph_loop *l = &g->loops[loop];
    if (exit >= g->nodes_count || g->kind[exit] != MR_NODE_TASK || g->slot_of[exit] != MR_NODE_NONE)
        return bad(e, "an exit of a loop is no task");
    uint32_t n;
    const uint32_t *in = mr_graph_inputs(g, exit, &n);
    uint32_t states = n < l->rounds ? 0 : l->rounds;
    if (n != states && n != states + l->rounds - 1)
        return bad(e, "an exit without an input a round");
    for (uint32_t r = 0; r < n; r++)
        if (r < states ? !is_round(g, in[r], loop, r) : in[r] != l->until[r - states])
            return bad(e, "an exit takes what is not of its loop");
    return MR_OK;
}

static int check_loop(
    const struct mr_graph *g, uint32_t loop, unsigned char *seen, struct mr_error *e)
{
    const struct mr_graph_loop *l = &g->loops[loop];
    for (uint32_t r = 0; r + 1 < l->rounds; r++)
        if (!is_round(g, l->until[r], loop, r) || seen[l->until[r]]++)
            return bad(e, "the condition of a loop is not of its body");
    for (uint32_t i = 0; i < l->exits_count; i++) {
        int err = check_exit(g, loop, l->exits[i], e);
        if (err) return err;
        if (seen[l->exits[i]]++) return bad(e, "an exit of two loops");
    }
    return MR_OK;
}

static const uint32_t *take_nodes(struct mr_str *rest, uint32_t n, struct mr_graph *g)
{
    if (rest->n / 4 < n) return NULL;
    uint32_t *nodes = mr_text_arena_take(&g->text, MR_MAX((size_t)n, (size_t)1) * 4);
    if (n) memcpy(nodes, rest->p, (size_t)n * 4);
    *rest = mr_str_of(rest->p + (size_t)n * 4, rest->n - (size_t)n * 4);
    return nodes;
}

static int read_loop(
    struct mr_str *rest, struct mr_graph *g, struct mr_graph_loop *l, struct mr_error *e)
{
    uint32_t head[3];
    if (rest->n < sizeof head) return bad(e, "a loop is cut short");
    memcpy(head, rest->p, sizeof head);
    *rest = mr_str_of(rest->p + sizeof head, rest->n - sizeof head);
    l->rounds = head[0];
    l->exits_count = head[1];
    if (l->rounds < 2 || l->rounds > MR_LOOP_ROUNDS_MAX || !l->exits_count ||
        l->exits_count > MR_LOOP_CARRY_MAX + 1 || !head[2] || head[2] > MR_LOOP_NAME_BYTES_MAX)
        return bad(e, "a loop of no size");
    l->until = take_nodes(rest, l->rounds - 1, g);
    l->exits = l->until ? take_nodes(rest, l->exits_count, g) : NULL;
    if (!l->exits || rest->n < head[2]) return bad(e, "a loop is cut short");
    l->name = mr_text_arena_copy(&g->text, mr_str_of(rest->p, head[2]));
    *rest = mr_str_of(rest->p + head[2], rest->n - head[2]);
    return mr_utf8_is_key(l->name, MR_LOOP_NAME_BYTES_MAX) ? MR_OK : bad(e, "a loop of no name");
}

static int read_slots(struct mr_str slots, struct mr_graph *g, struct mr_error *e)
{
    uint32_t n = g->nodes_count;
    if (slots.n != (size_t)8 * n) return bad(e, "slots of the wrong size");
    g->slot_of = mr_copy(slots.p, (size_t)4 * n);
    g->round_of = mr_copy(slots.p + (size_t)4 * n, (size_t)4 * n);
    for (uint32_t v = 0; v < n; v++) {
        if (g->slot_of[v] == MR_NODE_NONE) continue;
        if (g->slot_of[v] >= n || g->round_of[v] >= MR_LOOP_ROUNDS_MAX)
            return bad(e, "a slot that does not exist");
        g->slots_count = MR_MAX(g->slots_count, g->slot_of[v] + 1);
    }
    return MR_OK;
}

int mr_graph_loops_read(
    struct mr_str loops, struct mr_str slots, struct mr_graph *g, struct mr_error *e)
{
    int err = read_slots(slots, g, e);
    g->loops = mr_text_arena_take(&g->text, MR_LOOPS_MAX * sizeof *g->loops);
    while (!err && loops.n) {
        if (g->loops_count == MR_LOOPS_MAX) return bad(e, "too many loops");
        err = read_loop(&loops, g, &g->loops[g->loops_count], e);
        if (!err) g->loops_count++;
    }
    unsigned char *seen = mr_alloc(g->nodes_count);
    for (uint32_t i = 0; i < g->loops_count && !err; i++)
        err = check_loop(g, i, seen, e);
    mr_release(seen);
    return err;
}
