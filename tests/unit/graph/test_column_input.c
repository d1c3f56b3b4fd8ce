/* Adds nodes to a builder as whole columns. The graph must be the same as if the nodes were added
 * one by one, or all nodes must be refused. */
#include "tests/unit/graph/fixture.h"

#include "base/rng.h"
#include "graph/build/column_input.h"
#include "graph/bytes/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#define NODES 200
#define INPUTS 40

struct world {
    uint32_t key_bytes[NODES], op[NODES], args_bytes[NODES], inputs_count[NODES];
    uint32_t inputs[NODES * INPUTS], n, inputs_all;
    struct mr_buf keys, args;
};

static struct mr_node_op ops[4]; /* initialized before each use by fresh_ops */

static void fresh_ops(void)
{
    ops[0] = (struct mr_node_op){.name = MR_STR("any")};
    ops[1] = (struct mr_node_op){.name = MR_STR("sum")};
    ops[2] = (struct mr_node_op){.name = MR_STR("inc")};
    ops[3] = (struct mr_node_op){.name = {0}};
}

static void world_init(struct world *w)
{
    *w = (struct world){.n = 0};
    mr_buf_init(&w->keys, 1 << 20);
    mr_buf_init(&w->args, 1 << 20);
}

static void world_fini(struct world *w)
{
    mr_buf_fini(&w->keys);
    mr_buf_fini(&w->args);
}

static void add_node(struct world *w, struct mr_rng *r, bool has_edges)
{
    uint32_t v = w->n++, few = (uint32_t)mr_rng_below(r, 4);
    uint32_t most = has_edges ? MR_MIN(v, few) : 0;
    size_t keys = w->keys.n, args = w->args.n;
    mr_buf_printf(&w->keys, mr_rng_below(r, 9) ? "node-%u" : "kn\xc3\xb6t-%u", v);
    if (has_edges && v > INPUTS && !mr_rng_below(r, 20)) most = INPUTS;
    w->op[v] = most ? 1 + (uint32_t)mr_rng_below(r, 2) : (uint32_t)mr_rng_below(r, 3);
    w->inputs_count[v] = most;
    uint32_t from = (uint32_t)mr_rng_below(r, v + 1);
    for (uint32_t i = 0; i < most; i++)
        w->inputs[w->inputs_all++] = (from + i) % v;
    if (w->op[v]) mr_pack_list(&w->args, most + 1);
    for (uint32_t i = 0; i < most; i++)
        mr_pack_input(&w->args, i);
    switch (mr_rng_below(r, 4)) {
    case 0: mr_pack_text(&w->args, MR_STR("a text")); break;
    case 1: mr_pack_float(&w->args, 0.25); break;
    case 2: mr_pack_int(&w->args, -(int64_t)mr_rng_below(r, 70000)); break;
    default: mr_pack_uint(&w->args, mr_rng_below(r, 3)); break;
    }
    w->key_bytes[v] = (uint32_t)(w->keys.n - keys);
    w->args_bytes[v] = (uint32_t)(w->args.n - args);
}

static struct mr_builder *node_by_node(const struct world *w)
{
    struct mr_builder *b = mr_builder_new();
    size_t at = 0, args_at = 0, inputs_at = 0;
    for (uint32_t v = 0; v < w->n; v++) {
        uint32_t node = 0;
        assert_int_equal(
            mr_builder_node(b, mr_str_of(w->keys.p + at, w->key_bytes[v]), &node, NULL), 0);
        at += w->key_bytes[v];
    }
    for (uint32_t v = 0; v < w->n; v++) {
        struct mr_str args = mr_str_of(w->args.p + args_at, w->args_bytes[v]);
        args_at += args.n;
        if (!w->op[v]) {
            assert_int_equal(mr_builder_literal(b, v, args, NULL), 0);
            continue;
        }
        assert_int_equal(mr_builder_task(b, v, ops[w->op[v] - 1].name, NULL), 0);
        for (uint32_t i = 0; i < w->inputs_count[v]; i++) {
            uint32_t slot = 0;
            assert_int_equal(mr_builder_slot(b, w->inputs[inputs_at++], &slot, NULL), 0);
            assert_int_equal(slot, i);
        }
        mr_buf_add_str(mr_builder_args(b), args);
        assert_int_equal(mr_builder_task_end(b, NULL), 0);
    }
    return b;
}

/* Adds the nodes in slices of `step`. Returns the builder, or NULL if it refuses the nodes. */
static struct mr_builder *in_bulk(const struct world *w, uint32_t step)
{
    struct mr_builder *b = mr_builder_new();
    size_t key_at = 0, args_at = 0, inputs_at = 0;
    bool good = true;
    fresh_ops();
    for (uint32_t v = 0; v < w->n && good; v += step) {
        struct mr_node_columns c = {.count = MR_MIN(step, w->n - v),
            .key_bytes = w->key_bytes + v,
            .op = w->op + v,
            .args_bytes = w->args_bytes + v,
            .inputs_count = w->inputs_count + v,
            .inputs = w->inputs + inputs_at};
        for (uint32_t i = 0; i < c.count; i++) {
            c.keys.n += w->key_bytes[v + i];
            c.args.n += w->args_bytes[v + i];
            c.inputs_all += w->inputs_count[v + i];
        }
        c.keys.p = (const char *)w->keys.p + key_at;
        c.args.p = (const char *)w->args.p + args_at;
        key_at += c.keys.n;
        args_at += c.args.n;
        inputs_at += c.inputs_all;
        good = mr_builder_add_columns(b, &c, ops, 4);
    }
    if (!good || !mr_builder_columns_are_complete(b)) mr_builder_free(&b);
    return b;
}

static void bytes_of(struct mr_builder *b, struct mr_buf *out, uint64_t seed)
{
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    if (mr_graph_build(&b, &fixture_catalogue, &g, &e))
        fail_msg("seed %lu: %s", (unsigned long)seed, e.text);
    mr_graph_check(g);
    assert_int_equal(mr_graph_to_bytes(g, out, NULL), 0);
    mr_graph_free(&g);
}

static void columns_give_the_graph_that_nodes_give(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct world w;
        struct mr_rng r;
        struct mr_buf one, all;
        world_init(&w);
        mr_rng_init(&r, seed);
        mr_buf_init(&one, 1 << 24);
        mr_buf_init(&all, 1 << 24);
        uint32_t n = 1 + (uint32_t)mr_rng_below(&r, NODES);
        while (w.n < n)
            add_node(&w, &r, seed % 3 != 0);
        uint32_t step = 1 + (uint32_t)mr_rng_below(&r, n);
        fresh_ops();
        struct mr_builder *a = node_by_node(&w), *b = in_bulk(&w, step);
        assert_non_null(b);
        uint32_t targets = seed % 2 ? n : (uint32_t)mr_rng_below(&r, n + 1);
        for (uint32_t i = 0; i < targets; i++)
            assert_int_equal(mr_builder_target(a, i, NULL), 0);
        assert_true(mr_builder_target_all(b, 0, targets));
        bytes_of(a, &one, seed);
        bytes_of(b, &all, seed);
        assert_int_equal(one.n, all.n);
        assert_memory_equal(one.p, all.p, one.n);
        mr_buf_fini(&one);
        mr_buf_fini(&all);
        world_fini(&w);
    }
}

/* Makes three nodes: a literal, inc of the literal, and the sum of both. */
static void make_three(struct world *w)
{
    world_init(w);
    w->n = 3;
    mr_buf_add_text(&w->keys, "abbccc");
    for (uint32_t v = 0; v < 3; v++) {
        size_t before = w->args.n;
        w->key_bytes[v] = v + 1;
        w->op[v] = v ? v == 1 ? 3 : 2 : 0;
        w->inputs_count[v] = v;
        if (v) mr_pack_list(&w->args, v);
        for (uint32_t i = 0; i < v; i++)
            mr_pack_input(&w->args, i);
        if (!v) mr_pack_uint(&w->args, 7);
        w->args_bytes[v] = (uint32_t)(w->args.n - before);
    }
    w->inputs[0] = w->inputs[1] = 0;
    w->inputs[2] = 1;
    w->inputs_all = 3;
}

static void spoil(struct world *w, int how)
{
    switch (how) {
    case 0: memcpy(w->keys.p, "aaaaac", 6), w->key_bytes[1] = 1, w->key_bytes[2] = 4; break;
    case 1: w->keys.p[1] = 7; break;
    case 2: w->keys.p[1] = 0xc3; break;
    case 3: w->key_bytes[0] = 0, w->key_bytes[1] = 3; break;
    case 4: w->inputs[2] = 0; break;
    case 5: w->inputs[2] = 3; break;
    case 6: w->op[0] = 1; break; /* the arguments are not a list, so the build refuses them */
    case 7: w->op[1] = 0; break; /* a literal has an input */
    case 8: w->op[1] = 4; break; /* the operator has an empty name */
    case 9: w->op[1] = 5; break; /* the operator is not in the table */
    case 10: w->args.p[1] = 0x92; break; /* the pack claims more items than it has */
    case 11: w->args.p[7] = 9; break;    /* the arguments refer to an input 9, which is missing */
    case 12: w->args_bytes[0] = 2, w->args_bytes[1]--; break;
    default: break;
    }
}

static void what_is_not_right_is_refused(void **state)
{
    (void)state;
    for (int how = 0; how <= 13; how++) {
        struct world w;
        make_three(&w);
        spoil(&w, how);
        struct mr_builder *b = in_bulk(&w, 3);
        struct mr_graph *g = NULL;
        bool good = b && !mr_graph_build(&b, &fixture_catalogue, &g, NULL);
        if (good != (how == 13)) fail_msg("case %d", how);
        if (how != 6 && how != 13 && b) fail_msg("case %d is taken for right", how);
        mr_graph_free(&g);
        mr_builder_free(&b);
        world_fini(&w);
    }
}

struct pieces {
    struct mr_buf bytes;
    uint64_t total;
    size_t each, last;
};

static unsigned char *next_piece(void *ctx, size_t n, uint64_t total)
{
    struct pieces *p = ctx;
    assert_true(n <= p->each && n > 0);
    /* Only the last piece may be shorter. */
    if (p->bytes.n) assert_int_equal(p->last, p->each);
    p->last = n;
    p->total = total;
    return mr_buf_extend(&p->bytes, n);
}

static void pieces_are_the_bytes_cut(void **state)
{
    (void)state;
    struct world w;
    struct mr_rng r;
    world_init(&w);
    mr_rng_init(&r, 5);
    while (w.n < NODES)
        add_node(&w, &r, true);
    struct mr_builder *b = in_bulk(&w, 7);
    struct mr_graph *g = NULL;
    struct mr_buf bytes;
    mr_buf_init(&bytes, 1 << 24);
    assert_int_equal(mr_graph_build(&b, &fixture_catalogue, &g, NULL), 0);
    assert_int_equal(mr_graph_to_bytes(g, &bytes, NULL), 0);
    size_t sizes[] = {1, 7, 1000, bytes.n - 1, bytes.n, bytes.n + 1};
    for (size_t i = 0; i < MR_ARRAY_LEN(sizes); i++) {
        struct pieces p = {.each = sizes[i]};
        uint64_t total = 0;
        mr_buf_init(&p.bytes, bytes.n);
        struct mr_graph_pieces to = {next_piece, &p, sizes[i], bytes.n};
        assert_int_equal(mr_graph_to_pieces(g, &to, &total, NULL), 0);
        assert_int_equal(total, bytes.n);
        assert_int_equal(p.total, bytes.n);
        assert_int_equal(p.bytes.n, bytes.n);
        assert_memory_equal(p.bytes.p, bytes.p, bytes.n);
        to.bytes_max = bytes.n - 1;
        mr_buf_clear(&p.bytes);
        assert_int_equal(mr_graph_to_pieces(g, &to, &total, NULL), MR_ELIMIT);
        assert_int_equal(p.bytes.n, 0);
        mr_buf_fini(&p.bytes);
    }
    mr_buf_fini(&bytes);
    mr_graph_free(&g);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_give_the_graph_that_nodes_give),
        cmocka_unit_test(what_is_not_right_is_refused), cmocka_unit_test(pieces_are_the_bytes_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
