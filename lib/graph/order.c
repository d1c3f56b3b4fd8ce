/* Culls and orders nodes (order.h). To make a node means to compute its value. The value is held
 * until all dependents of the node are made. The *need* of a node is the largest number of values
 * that are held at the same time while its inputs are made, at least 1. */
#include "graph/order.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct frame {
    uint32_t node;
    uint32_t next; /* number of the next input to visit */
};

struct stack {
    struct frame *frames;
    size_t count;
    size_t room;
};

static void push(struct stack *s, uint32_t node)
{
    if (s->count == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        s->frames = mr_grow(s->frames, s->room * sizeof *s->frames, room * sizeof *s->frames);
        s->room = room;
    }
    s->frames[s->count++] = (struct frame){node, 0};
}

/* ---- a topological order of all nodes, or a cycle -------------------------------------------- */

enum { WHITE, GREY, BLACK };

static void keep_cycle(const struct stack *s, uint32_t node, struct mr_order *out)
{
    size_t from = s->count;
    while (s->frames[--from].node != node)
        ;
    out->cycle_count = (uint32_t)(s->count - from);
    out->cycle = mr_alloc_array(out->cycle_count, sizeof *out->cycle);
    for (uint32_t i = 0; i < out->cycle_count; i++)
        out->cycle[i] = s->frames[from + i].node;
}

/* Visits nodes depth first from `root`, and appends finished nodes to `topo`. False: there is a
 * cycle, which is now in `out`. */
static bool visit(const struct mr_order_graph *g, uint32_t root, unsigned char *color,
    struct stack *s, uint32_t *topo, uint32_t *done, struct mr_order *out)
{
    if (color[root] != WHITE) return true;
    push(s, root);
    color[root] = GREY;
    while (s->count) {
        struct frame *f = &s->frames[s->count - 1];
        if (f->next == g->input_count[f->node]) {
            color[f->node] = BLACK;
            topo[(*done)++] = f->node;
            s->count--;
            continue;
        }
        uint32_t input = g->inputs[g->input_at[f->node] + f->next++];
        if (color[input] == BLACK) continue;
        if (color[input] == GREY) {
            keep_cycle(s, input, out);
            return false;
        }
        color[input] = GREY;
        push(s, input);
    }
    return true;
}

static bool is_sorted(const struct mr_order_graph *g)
{
    for (uint32_t v = 0; v < g->count; v++)
        for (uint32_t i = 0; i < g->input_count[v]; i++)
            if (g->inputs[g->input_at[v] + i] >= v) return false;
    return true;
}

/* Writes all nodes into `topo`, each after its inputs. The order of definition is often such an
 * order already. False: there is a cycle, which is now in `out`. */
static bool sort_all(const struct mr_order_graph *g, uint32_t *topo, struct mr_order *out)
{
    if (is_sorted(g)) {
        for (uint32_t v = 0; v < g->count; v++)
            topo[v] = v;
        return true;
    }
    unsigned char *color = mr_alloc(g->count);
    struct stack s = {0};
    uint32_t done = 0;
    bool ok = true;
    for (uint32_t v = 0; v < g->count && ok; v++)
        ok = visit(g, v, color, &s, topo, &done, out);
    mr_assert(!ok || done == g->count);
    mr_release(s.frames);
    mr_release(color);
    return ok;
}

/* ---- the order ------------------------------------------------------------------------------- */

/* The state of one node while the order is made. The function `walk` accesses nodes at random, so
 * the struct takes only half a cache line. */
struct spot {
    /* Values that are held at the same time while the node is made; 0: the node is culled. */
    uint32_t need;
    uint32_t missing; /* inputs that have no rank yet */
    uint32_t uses;    /* dependents that have no rank yet */
    /* The dependents without a rank, as the xor of their numbers; if only one is left, its
     * number. */
    uint32_t last_use;
    uint32_t rank; /* position in the order; NONE: not set yet */
    uint32_t dependent_at;
    uint32_t input_at;
    uint32_t input_count;
};

struct plan {
    const struct mr_order_graph *g;
    const uint32_t *topo;
    /* One spot for each node, and one more: its `dependent_at` is the end of the last node's
     * dependents. */
    struct spot *at;
    uint32_t *kids;       /* the inputs of each node, in the order in which they are made */
    uint32_t *dependents; /* the dependents of the kept nodes, in CSR form */
    uint32_t *ready;      /* nodes that come next, because making them releases a value */
    uint32_t ready_count;
    uint32_t ready_room;
    struct mr_order *out;
};

/* Finds the nodes that the targets need, and counts their inputs and dependents. */
static void cull(struct plan *p)
{
    const struct mr_order_graph *g = p->g;
    for (uint32_t i = 0; i < g->targets_count; i++)
        p->at[g->targets[i]].need = 1;
    for (uint32_t t = g->count; t-- > 0;) {
        uint32_t v = p->topo[t];
        if (!p->at[v].need) continue;
        p->out->kept++;
        struct spot *s = &p->at[v];
        s->missing = s->input_count = g->input_count[v];
        s->input_at = g->input_at[v];
        for (uint32_t i = 0; i < s->input_count; i++) {
            struct spot *input = &p->at[g->inputs[s->input_at + i]];
            input->need = 1;
            input->uses++;
            input->last_use ^= v;
        }
    }
}

static int larger_first(const void *a, const void *b)
{
    uint64_t x = 0, y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* Sorts the inputs of one node by descending need; inputs of equal need keep their order. Returns
 * the need of the node. Each input is made while the values of the inputs before it are held. */
static uint32_t sort_kids(struct plan *p, uint32_t *kids, uint32_t n, uint64_t *scratch)
{
    bool sorted = true;
    for (uint32_t i = 1; i < n && sorted; i++)
        sorted = p->at[kids[i - 1]].need >= p->at[kids[i]].need;
    if (!sorted) {
        uint64_t few[8];
        uint64_t *keys = n <= 8 ? few : scratch;
        for (uint32_t i = 0; i < n; i++)
            keys[i] = (uint64_t)(UINT32_MAX - p->at[kids[i]].need) << 32 | i;
        for (uint32_t i = 1; i < n && n <= 8; i++)
            for (uint32_t j = i; j > 0 && keys[j - 1] > keys[j]; j--) {
                uint64_t swap = keys[j];
                keys[j] = keys[j - 1];
                keys[j - 1] = swap;
            }
        if (n > 8) qsort(keys, n, sizeof *keys, larger_first);
        uint32_t sorted_few[8];
        uint32_t *to = n <= 8 ? sorted_few : (uint32_t *)(void *)(scratch + n);
        for (uint32_t i = 0; i < n; i++)
            to[i] = kids[(uint32_t)keys[i]];
        memcpy(kids, to, n * sizeof *kids);
    }
    uint64_t need = 1;
    for (uint32_t i = 0; i < n; i++)
        need = MR_MAX(need, (uint64_t)p->at[kids[i]].need + i);
    return (uint32_t)MR_MIN(need, (uint64_t)UINT32_MAX - 1);
}

static void sort_all_kids(struct plan *p)
{
    const struct mr_order_graph *g = p->g;
    uint32_t most = 0;
    for (uint32_t v = 0; v < g->count; v++)
        most = MR_MAX(most, g->input_count[v]);
    uint64_t *scratch = mr_alloc_array((size_t)most * 2, sizeof *scratch);
    for (uint32_t t = 0; t < g->count; t++) {
        uint32_t v = p->topo[t], n = g->input_count[v];
        if (p->at[v].need && n) p->at[v].need = sort_kids(p, p->kids + g->input_at[v], n, scratch);
    }
    mr_release(scratch);
}

/* Lists the dependents of the kept nodes: each node gets a range of p->dependents. */
static void list_dependents(struct plan *p)
{
    const struct mr_order_graph *g = p->g;
    uint32_t at = 0;
    /* Sets `dependent_at` to the end of the node's range. The next loop fills each range from its
     * end, and moves `dependent_at` to the start of the range. */
    for (uint32_t v = 0; v <= g->count; v++) {
        p->at[v].rank = NONE;
        at += p->at[v].uses;
        p->at[v].dependent_at = at;
    }
    for (uint32_t v = g->count; v-- > 0;) {
        const struct spot *s = &p->at[v];
        for (uint32_t i = 0; s->need && i < s->input_count; i++)
            p->dependents[--p->at[g->inputs[s->input_at + i]].dependent_at] = v;
    }
}

static void offer(struct plan *p, uint32_t v)
{
    if (p->ready_count == p->ready_room) {
        uint32_t room = p->ready_room ? p->ready_room * 2 : 256;
        p->ready = mr_grow(p->ready, p->ready_room * sizeof *p->ready, room * sizeof *p->ready);
        p->ready_room = room;
    }
    p->ready[p->ready_count++] = v;
}

/* True: making this node, whose inputs are made, releases the value of an input. False: it releases
 * none. */
static bool frees(const struct plan *p, const struct spot *s)
{
    for (uint32_t i = 0; i < s->input_count; i++)
        if (p->at[p->kids[s->input_at + i]].uses == 1) return true;
    return false;
}

static void make_one(struct plan *p, uint32_t v, uint32_t *made)
{
    struct spot *s = &p->at[v];
    s->rank = *made;
    p->out->order[(*made)++] = v;
    for (uint32_t i = 0; i < s->input_count; i++) {
        struct spot *input = &p->at[p->kids[s->input_at + i]];
        input->last_use ^= v;
        if (--input->uses == 1 && !p->at[input->last_use].missing) offer(p, input->last_use);
    }
    for (uint32_t i = s->dependent_at; i < s[1].dependent_at; i++) {
        struct spot *d = &p->at[p->dependents[i]];
        if (--d->missing == 0 && frees(p, d)) offer(p, p->dependents[i]);
    }
}

static void make(struct plan *p, uint32_t v, uint32_t *made)
{
    make_one(p, v, made);
    for (uint32_t i = 0; i < p->ready_count; i++)
        if (p->at[p->ready[i]].rank == NONE) make_one(p, p->ready[i], made);
    p->ready_count = 0;
}

static void walk(struct plan *p)
{
    const struct mr_order_graph *g = p->g;
    struct stack stack = {0};
    uint32_t made = 0;
    for (uint32_t i = 0; i < g->targets_count; i++) {
        push(&stack, g->targets[i]);
        while (stack.count) {
            struct frame *f = &stack.frames[stack.count - 1];
            const struct spot *s = &p->at[f->node];
            if (s->rank != NONE) {
                stack.count--;
            } else if (!s->missing) {
                stack.count--;
                make(p, f->node, &made);
            } else {
                uint32_t kid = p->kids[s->input_at + f->next++];
                if (p->at[kid].rank == NONE) push(&stack, kid);
            }
        }
    }
    mr_assert(made == p->out->kept);
    mr_release(stack.frames);
}

bool mr_order_make(const struct mr_order_graph *g, struct mr_order *out)
{
    *out = (struct mr_order){0};
    uint32_t *topo = mr_alloc_array(g->count, sizeof *topo);
    if (!sort_all(g, topo, out)) {
        mr_release(topo);
        return false;
    }
    size_t n = (size_t)g->count + 1;
    /* All of this memory is written immediately, because a page that is read before it is written
     * is mapped twice. */
    struct plan p = {.g = g, .topo = topo, .out = out};
    p.at = mr_alloc_aligned(n * sizeof *p.at, 64);
    cull(&p);
    p.kids = mr_copy(g->inputs, (size_t)g->inputs_count * sizeof *p.kids);
    sort_all_kids(&p);
    mr_release(topo);
    p.dependents = mr_alloc_array(g->inputs_count, sizeof *p.dependents);
    list_dependents(&p);

    out->order = mr_alloc_array(out->kept, sizeof *out->order);
    walk(&p);
    out->rank = mr_alloc_array(n, sizeof *out->rank);
    for (uint32_t v = 0; v < g->count; v++)
        out->rank[v] = p.at[v].rank;

    mr_release(p.at);
    mr_release(p.kids);
    mr_release(p.dependents);
    mr_release(p.ready);
    return true;
}

void mr_order_fini(struct mr_order *o)
{
    mr_release(o->order);
    mr_release(o->rank);
    mr_release(o->cycle);
    *o = (struct mr_order){0};
}
