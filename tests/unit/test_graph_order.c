#include "graph_fixture.h"

#include "base/rng.h"
#include "graph/builder_impl.h"
#include "graph/bytes.h"
#include "graph/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

/* A graph under test: who needs whom, in the order of definition. */
struct shape {
    uint32_t n;
    uint32_t at[8192];
    uint32_t count[8192];
    uint32_t inputs[65536];
    uint32_t inputs_count;
    uint32_t targets[8192];
    uint32_t targets_count;
};

static uint32_t node(struct shape *s)
{
    assert_true(s->n < MR_ARRAY_LEN(s->at));
    s->at[s->n] = s->inputs_count;
    s->count[s->n] = 0;
    return s->n++;
}

static void input(struct shape *s, uint32_t from) /* of the newest node */
{
    for (uint32_t i = 0; i < s->count[s->n - 1]; i++)
        if (s->inputs[s->at[s->n - 1] + i] == from) return;
    assert_true(s->inputs_count < MR_ARRAY_LEN(s->inputs));
    s->inputs[s->inputs_count++] = from;
    s->count[s->n - 1]++;
}

static void target(struct shape *s, uint32_t v)
{
    s->targets[s->targets_count++] = v;
}

static struct mr_order order_of(const struct shape *s)
{
    struct mr_order_graph g = {
        s->n, s->at, s->count, s->inputs, s->inputs_count, s->targets, s->targets_count};
    struct mr_order o;
    assert_true(mr_order_make(&g, &o));
    return o;
}

/* The most values alive at once when the nodes are made in this order: a value lives from when it
 * is made until its last user is; targets live on and are not counted. */
static uint32_t peak(const struct shape *s, const uint32_t *order, uint32_t n)
{
    uint32_t *uses = mr_alloc_array(s->n, sizeof *uses);
    unsigned char *is_target = mr_alloc(s->n);
    for (uint32_t i = 0; i < s->targets_count; i++)
        is_target[s->targets[i]] = 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < s->count[order[i]]; j++)
            uses[s->inputs[s->at[order[i]] + j]]++;
    uint32_t alive = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = order[i];
        if (!is_target[v]) alive++;
        most = MR_MAX(most, alive);
        for (uint32_t j = 0; j < s->count[v]; j++) {
            uint32_t u = s->inputs[s->at[v] + j];
            if (!--uses[u] && !is_target[u]) alive--;
        }
    }
    mr_release(uses);
    mr_release(is_target);
    return most;
}

/* What a scheduler does that knows no better: whatever is ready, in the order it became so. */
static uint32_t naive_peak(const struct shape *s)
{
    uint32_t *order = mr_alloc_array(s->n, sizeof *order);
    uint32_t *level = mr_alloc_array(s->n, sizeof *level);
    uint32_t n = 0, levels = 0;
    for (uint32_t v = 0; v < s->n; v++) { /* shapes are defined in topological order */
        for (uint32_t j = 0; j < s->count[v]; j++)
            level[v] = MR_MAX(level[v], level[s->inputs[s->at[v] + j]] + 1);
        levels = MR_MAX(levels, level[v] + 1);
    }
    for (uint32_t l = 0; l < levels; l++)
        for (uint32_t v = 0; v < s->n; v++)
            if (level[v] == l) order[n++] = v;
    uint32_t most = peak(s, order, n);
    mr_release(order);
    mr_release(level);
    return most;
}

static uint32_t our_peak(const struct shape *s)
{
    struct mr_order o = order_of(s);
    uint32_t most = peak(s, o.order, o.kept);
    mr_order_fini(&o);
    return most;
}

static struct shape *shape_new(void)
{
    return mr_alloc(sizeof(struct shape));
}

static void expect(const char *what, struct shape *s, uint32_t at_most)
{
    uint32_t ours = our_peak(s), naive = naive_peak(s);
    print_message("%-34s %5u nodes: %4u values alive, by levels %4u\n", what, s->n, ours, naive);
    if (ours > at_most) fail_msg("%s: %u values alive, at most %u wanted", what, ours, at_most);
    assert_true(ours <= naive);
    mr_release(s);
}

static void a_tree_reduction_keeps_one_value_a_level(void **state)
{
    (void)state;
    struct shape *s = shape_new();
    uint32_t level[1024], n = 1024;
    for (uint32_t i = 0; i < n; i++)
        level[i] = node(s);
    while (n > 1) {
        for (uint32_t i = 0; i < n / 2; i++) {
            uint32_t v = node(s);
            input(s, level[2 * i]);
            input(s, level[2 * i + 1]);
            level[i] = v;
        }
        n /= 2;
    }
    target(s, level[0]);
    expect("binary tree over 1024", s, 12);
}

static void partial_results_of_a_map_let_its_inputs_go(void **state)
{
    (void)state;
    struct shape *s = shape_new();
    uint32_t partial[512];
    for (uint32_t i = 0; i < 512; i++) {
        uint32_t load = node(s);
        uint32_t clean = node(s);
        input(s, load);
        partial[i] = node(s);
        input(s, clean);
        if (i % 2) input(s, load);
    }
    uint32_t all = node(s);
    for (uint32_t i = 0; i < 512; i++)
        input(s, partial[i]);
    target(s, all);
    expect("load, clean, sum of 512", s, 514);
}

static void two_reductions_of_the_same_parts_go_hand_in_hand(void **state)
{
    (void)state;
    struct shape *s = shape_new();
    uint32_t parts[200];
    for (uint32_t i = 0; i < 200; i++)
        parts[i] = node(s);
    uint32_t sums[2];
    for (uint32_t k = 0; k < 2; k++) { /* a chain each: total = total + part */
        sums[k] = parts[0];
        for (uint32_t i = 1; i < 200; i++) {
            uint32_t v = node(s);
            input(s, sums[k]);
            input(s, parts[i]);
            sums[k] = v;
        }
        target(s, sums[k]);
    }
    expect("two running sums of 200", s, 5);
}

static void a_map_reduce_keeps_no_more_than_the_maps(void **state)
{
    (void)state;
    struct shape *s = shape_new();
    uint32_t split[40][20];
    for (uint32_t m = 0; m < 40; m++) {
        uint32_t map = node(s);
        for (uint32_t r = 0; r < 20; r++) {
            split[m][r] = node(s);
            input(s, map);
        }
    }
    for (uint32_t r = 0; r < 20; r++) {
        uint32_t reduce = node(s);
        for (uint32_t m = 0; m < 40; m++)
            input(s, split[m][r]);
        target(s, reduce);
    }
    expect("shuffle of 40 maps to 20 reduces", s, 100);
}

static void a_stencil_is_walked_along_its_front(void **state)
{
    (void)state;
    struct shape *s = shape_new();
    uint32_t now[100], next[100];
    for (uint32_t i = 0; i < 100; i++)
        now[i] = node(s);
    for (uint32_t t = 0; t < 10; t++) {
        for (uint32_t i = 0; i < 100; i++) {
            next[i] = node(s);
            for (uint32_t k = i ? i - 1 : 0; k <= MR_MIN(i + 1, 99u); k++)
                input(s, now[k]);
        }
        memcpy(now, next, sizeof now);
    }
    for (uint32_t i = 0; i < 100; i++)
        target(s, now[i]);
    expect("stencil 100 wide, 10 steps", s, 40);
}

static void independent_chains_run_one_after_another(void **state)
{
    (void)state;
    struct shape *s = shape_new();
    uint32_t tips[100];
    for (uint32_t i = 0; i < 100; i++)
        tips[i] = node(s);
    for (uint32_t k = 0; k < 20; k++)
        for (uint32_t i = 0; i < 100; i++) {
            uint32_t v = node(s);
            input(s, tips[i]);
            tips[i] = v;
        }
    for (uint32_t i = 0; i < 100; i++)
        target(s, tips[i]);
    expect("100 chains of 20", s, 2);
}

static void a_cross_validation_shares_its_folds(void **state)
{
    (void)state;
    struct shape *s = shape_new();
    uint32_t data = node(s), folds[10], scores[200];
    for (uint32_t f = 0; f < 10; f++) {
        folds[f] = node(s);
        input(s, data);
    }
    for (uint32_t p = 0; p < 20; p++)
        for (uint32_t f = 0; f < 10; f++) {
            uint32_t fit = node(s);
            input(s, folds[f]);
            scores[p * 10 + f] = node(s);
            input(s, fit);
            input(s, folds[f]);
        }
    uint32_t best = node(s);
    for (uint32_t i = 0; i < 200; i++)
        input(s, scores[i]);
    target(s, best);
    expect("20 settings on 10 folds", s, 213);
}

static void deep_graphs_need_no_deep_stack(void **state)
{
    (void)state;
    enum { DEEP = 300000 };
    uint32_t *at = mr_alloc_array(DEEP, sizeof *at), *count = mr_alloc_array(DEEP, sizeof *count);
    uint32_t *inputs = mr_alloc_array(DEEP, sizeof *inputs), first = 0;
    for (uint32_t i = 0; i < DEEP; i++) { /* defined from the end: the worst for a stack */
        at[i] = i;
        count[i] = i + 1 < DEEP;
        inputs[i] = i + 1 < DEEP ? i + 1 : 0;
    }
    struct mr_order_graph g = {DEEP, at, count, inputs, DEEP - 1, &first, 1};
    struct mr_order o;
    assert_true(mr_order_make(&g, &o));
    assert_int_equal(o.kept, DEEP);
    assert_int_equal(o.order[0], DEEP - 1);
    mr_order_fini(&o);
    mr_release(at);
    mr_release(count);
    mr_release(inputs);
}

/* ---- properties of random graphs ------------------------------------------------------------- */

static struct shape *random_shape(uint64_t seed, bool forward_only)
{
    struct mr_rng r;
    mr_rng_init(&r, seed);
    struct shape *s = shape_new();
    uint32_t n = 1 + (uint32_t)mr_rng_below(&r, 200), most = 1 + (uint32_t)mr_rng_below(&r, 6);
    uint32_t perm[256];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)mr_rng_below(&r, i + 1);
        perm[i] = perm[k];
        perm[k] = i;
    }
    for (uint32_t i = 0; i < n; i++) /* node i stands at perm[i] of a hidden topological order */
        (void)node(s);
    s->inputs_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->at[i] = s->inputs_count;
        for (uint32_t k = (uint32_t)mr_rng_below(&r, most + 1); k; k--) {
            uint32_t from = (uint32_t)mr_rng_below(&r, n);
            bool before = forward_only ? from < i : perm[from] < perm[i];
            bool twice = false;
            for (uint32_t j = 0; j < s->count[i]; j++)
                twice |= s->inputs[s->at[i] + j] == from;
            if (!before || twice) continue;
            s->inputs[s->inputs_count++] = from;
            s->count[i]++;
        }
    }
    for (uint32_t k = 1 + (uint32_t)mr_rng_below(&r, 3); k; k--)
        target(s, (uint32_t)mr_rng_below(&r, n));
    return s;
}

static void mark_ancestors(const struct shape *s, unsigned char *kept)
{
    for (uint32_t i = 0; i < s->targets_count; i++)
        kept[s->targets[i]] = 1;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t v = 0; v < s->n; v++)
            for (uint32_t j = 0; kept[v] && j < s->count[v]; j++) {
                unsigned char *k = &kept[s->inputs[s->at[v] + j]];
                more |= !*k;
                *k = 1;
            }
    }
}

static void the_order_is_topological_and_keeps_exactly_the_ancestors(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct shape *s = random_shape(seed, seed % 3 == 0);
        struct mr_order o = order_of(s);
        unsigned char kept[256] = {0};
        mark_ancestors(s, kept);
        uint32_t want = 0;
        for (uint32_t v = 0; v < s->n; v++) {
            want += kept[v];
            if (kept[v] != (o.rank[v] != UINT32_MAX)) fail_msg("seed %lu", (unsigned long)seed);
            for (uint32_t j = 0; kept[v] && j < s->count[v]; j++)
                assert_true(o.rank[s->inputs[s->at[v] + j]] < o.rank[v]);
        }
        assert_int_equal(o.kept, want);
        for (uint32_t i = 0; i < o.kept; i++)
            assert_int_equal(o.rank[o.order[i]], i);
        mr_order_fini(&o);
        mr_release(s);
    }
}

static void a_cycle_is_found_wherever_it_is(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct shape *s = random_shape(seed, false);
        struct mr_rng r;
        mr_rng_init(&r, seed * 77);
        /* one more node, that needs some node v, and that an ancestor of v needs */
        uint32_t v = (uint32_t)mr_rng_below(&r, s->n), up = v;
        for (uint32_t k = (uint32_t)mr_rng_below(&r, 4); k && s->count[up]; k--)
            up = s->inputs[s->at[up] + mr_rng_below(&r, s->count[up])];
        uint32_t extra = node(s);
        input(s, v);
        uint32_t old = s->at[up], n = s->count[up];
        s->at[up] = s->inputs_count;
        for (uint32_t j = 0; j < n; j++)
            s->inputs[s->inputs_count++] = s->inputs[old + j];
        s->inputs[s->inputs_count++] = extra;
        s->count[up]++;
        struct mr_order_graph g = {
            s->n, s->at, s->count, s->inputs, s->inputs_count, s->targets, s->targets_count};
        struct mr_order o;
        assert_false(mr_order_make(&g, &o));
        assert_true(o.cycle_count >= 2);
        for (uint32_t i = 0; i < o.cycle_count; i++) {
            uint32_t a = o.cycle[i], b = o.cycle[(i + 1) % o.cycle_count];
            bool found = false;
            for (uint32_t j = 0; j < s->count[a]; j++)
                found |= s->inputs[s->at[a] + j] == b;
            assert_true(found);
        }
        mr_order_fini(&o);
        mr_release(s);
    }
}

/* ---- whole graphs ---------------------------------------------------------------------------- */

static uint32_t named(struct mr_builder *b, uint32_t i)
{
    char key[32];
    (void)snprintf(key, sizeof key, "node/%u", i);
    uint32_t v = 0;
    assert_int_equal(mr_builder_node(b, mr_str(key), &v, NULL), 0);
    return v;
}

static void define(struct mr_builder *b, const struct shape *s, uint32_t i, struct mr_rng *r)
{
    uint32_t v = named(b, i);
    if (!s->count[i]) {
        struct mr_buf pack;
        mr_buf_init(&pack, 100);
        mr_pack_uint(&pack, i % 5);
        assert_int_equal(mr_builder_literal(b, v, mr_buf_str(&pack), NULL), 0);
        mr_buf_fini(&pack);
        return;
    }
    bool by_name = i % 4 == 0;
    assert_int_equal(mr_builder_task(b, v, by_name ? MR_STR("any") : MR_STR("sum"), NULL), 0);
    struct mr_buf *args = mr_builder_args(b);
    if (by_name) {
        mr_pack_map(args, 2);
        mr_pack_text(args, (struct mr_str){0});
    }
    mr_pack_list(args, s->count[i] + 1);
    for (uint32_t j = 0; j < s->count[i]; j++)
        assert_int_equal(mr_builder_input(b, named(b, s->inputs[s->at[i] + j]), NULL), 0);
    mr_pack_uint(args, i % 3);
    if (by_name) {
        mr_pack_text(args, MR_STR("axis"));
        mr_pack_float(args, 0.5);
    }
    assert_int_equal(mr_builder_task_end(b, NULL), 0);
    struct mr_task_options o = {0};
    if (mr_rng_below(r, 3) == 0) o.given |= MR_OPTION_RETRIES, o.retries = i % 2;
    if (mr_rng_below(r, 5) == 0)
        o.given |= MR_OPTION_PERSIST, o.persist = true, o.persist_name = MR_STR("kept");
    assert_int_equal(mr_builder_options(b, v, &o, NULL), 0);
}

/* `rotate`: the definitions come in another order. */
static struct mr_graph *graph_of(const struct shape *s, uint64_t seed, uint32_t rotate)
{
    struct mr_builder *b = mr_builder_new();
    struct mr_rng r;
    mr_rng_init(&r, seed);
    for (uint32_t i = 0; i < s->n; i++)
        define(b, s, (i + rotate) % s->n, &r);
    for (uint32_t i = 0; i < s->targets_count; i++)
        assert_int_equal(mr_builder_target(b, named(b, s->targets[i]), NULL), 0);
    struct mr_graph_label label = {MR_STR("seed"), MR_STR("x")};
    struct mr_job_options job = {.name = MR_STR("random"),
        .labels = &label,
        .labels_count = 1,
        .priority = -3,
        .deadline = 5 * MR_SECOND};
    assert_int_equal(mr_builder_job(b, &job, NULL), 0);
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    int err = mr_graph_build(&b, &fixture_catalogue, &g, &e);
    if (err) fail_msg("seed %lu: %s", (unsigned long)seed, e.text);
    assert_null(b);
    mr_graph_check(g);
    return g;
}

static void bytes_are(struct mr_graph *g, struct mr_buf *out)
{
    mr_buf_clear(out);
    assert_int_equal(mr_graph_to_bytes(g, out, NULL), 0);
}

static void bytes_bring_back_the_same_graph(void **state)
{
    (void)state;
    struct mr_buf once, twice;
    mr_buf_init(&once, 1 << 24);
    mr_buf_init(&twice, 1 << 24);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct shape *s = random_shape(seed, false);
        struct mr_graph *g = graph_of(s, seed, 0), *again = NULL, *added = NULL;
        struct mr_error e = {0};
        bytes_are(g, &once);
        if (mr_graph_from_bytes(mr_buf_str(&once), &again, &e)) fail_msg("%s", e.text);
        mr_graph_check(again);
        bytes_are(again, &twice);
        assert_true(mr_str_eq(mr_buf_str(&once), mr_buf_str(&twice)));
        assert_memory_equal(g->hash, again->hash, g->nodes_count * sizeof *g->hash);
        assert_int_equal(g->tasks_count, again->tasks_count);
        /* the same columns, as if a client had sent them */
        struct mr_builder *b = mr_builder_new();
        if (mr_builder_add_bytes(b, mr_buf_str(&once), &e)) fail_msg("%s", e.text);
        if (mr_graph_build(&b, &fixture_catalogue, &added, &e)) fail_msg("%s", e.text);
        assert_int_equal(added->nodes_count, g->nodes_count);
        for (uint32_t v = 0; v < g->nodes_count; v++) {
            uint32_t w = mr_graph_find(added, mr_graph_key(g, v));
            assert_true(mr_graph_hash_eq(g->hash[v], added->hash[w]));
        }
        mr_graph_free(&g);
        mr_graph_free(&again);
        mr_graph_free(&added);
        mr_release(s);
    }
    mr_buf_fini(&once);
    mr_buf_fini(&twice);
}

static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    struct shape *s = random_shape(7, false);
    struct mr_graph *g = graph_of(s, 7, 0), *again = NULL;
    struct mr_buf b;
    mr_buf_init(&b, 1 << 24);
    bytes_are(g, &b);
    for (size_t i = 0; i < b.n; i++) { /* every byte, and every length */
        struct mr_error e = {0};
        b.p[i] ^= 0x41;
        assert_int_not_equal(mr_graph_from_bytes(mr_buf_str(&b), &again, &e), 0);
        assert_true(e.code != 0 && e.text[0]);
        b.p[i] ^= 0x41;
        assert_int_not_equal(mr_graph_from_bytes(mr_str_of(b.p, i), &again, &e), 0);
    }
    assert_null(again);
    assert_int_equal(mr_graph_from_bytes(mr_buf_str(&b), &again, NULL), 0);
    mr_graph_free(&again);
    mr_graph_free(&g);
    mr_buf_fini(&b);
    mr_release(s);
}

static void definitions_do_not_depend_on_the_order_of_submission(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct shape *s = random_shape(seed, false);
        struct mr_graph *a = graph_of(s, seed, 0), *b = graph_of(s, seed, s->n / 2);
        assert_int_equal(a->nodes_count, b->nodes_count);
        for (uint32_t v = 0; v < a->nodes_count; v++) {
            uint32_t w = mr_graph_find(b, mr_graph_key(a, v));
            assert_int_not_equal(w, MR_NODE_NONE);
            assert_true(mr_graph_hash_eq(a->hash[v], b->hash[w]));
        }
        mr_graph_free(&a);
        mr_graph_free(&b);
        mr_release(s);
    }
}

static void a_changed_literal_changes_exactly_its_descendants(void **state)
{
    (void)state;
    uint32_t nodes[512];
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct shape *s = random_shape(seed, false);
        struct mr_graph *g = graph_of(s, seed, 0);
        uint32_t leaf = 0;
        while (g->kind[leaf] != MR_NODE_LITERAL)
            leaf++;
        mr_graph_hash *before = mr_copy(g->hash, g->nodes_count * sizeof *g->hash);
        mr_graph_set_hash(g, leaf, (mr_graph_hash){seed, 1});
        mr_graph_rehash(g);
        bool more = false;
        uint32_t n = mr_graph_descendants(g, leaf, nodes, MR_ARRAY_LEN(nodes), &more), at = 0;
        assert_false(more);
        for (uint32_t v = 0; v < g->nodes_count; v++) {
            bool below = v == leaf || (at < n && nodes[at] == v);
            if (at < n && nodes[at] == v) at++;
            assert_int_equal(below, !mr_graph_hash_eq(before[v], g->hash[v]));
        }
        mr_release(before);
        mr_graph_free(&g);
        mr_release(s);
    }
}

static void ancestors_and_descendants_mirror_each_other(void **state)
{
    (void)state;
    uint32_t up[512], down[512];
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct shape *s = random_shape(seed, false);
        struct mr_graph *g = graph_of(s, seed, 0);
        bool more = false;
        for (uint32_t v = 0; v < g->nodes_count; v++) {
            uint32_t n = mr_graph_ancestors(g, v, up, MR_ARRAY_LEN(up), &more);
            for (uint32_t i = 0; i < n; i++) {
                uint32_t m = mr_graph_descendants(g, up[i], down, MR_ARRAY_LEN(down), &more);
                bool found = false;
                for (uint32_t k = 0; k < m; k++)
                    found |= down[k] == v;
                assert_true(found && up[i] < v);
            }
        }
        mr_graph_free(&g);
        mr_release(s);
    }
}

static void why_a_key_runs_or_never_will_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        const char *says;
    } rows[] = {
        {"z", "\"z\" is a target"},
        {"y", "\"y\" is needed by the target \"z\""},
        {"x", "\"x\" is needed by the target \"z\" through \"y\""},
        {"other", "\"other\" was submitted, but no target needs it: it will never run (2 of 5"},
        {"othre", "\"othre\" is no key of this graph (did you mean \"other\"?)"},
    };
    struct mr_graph *g = NULL;
    const char json[] = "{\"dsk\": {\"x\": 1, \"y\": [\"inc\", \"x\"], \"z\": [\"inc\", \"y\"], "
                        "\"other\": [\"inc\", 5], \"more\": [\"inc\", \"other\"]}, \"targets\": "
                        "[\"z\"]}";
    assert_int_equal(mr_graph_from_json(mr_str(json), &fixture_catalogue, &g, NULL), 0);
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct mr_buf b;
        mr_buf_init(&b, 4096);
        mr_graph_explain_key(g, mr_str(rows[i].key), &b);
        mr_buf_add_byte(&b, 0);
        if (!strstr((char *)b.p, rows[i].says)) fail_msg("%s: %s", rows[i].key, (char *)b.p);
        mr_buf_fini(&b);
    }
    mr_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_reduction_keeps_one_value_a_level),
        cmocka_unit_test(partial_results_of_a_map_let_its_inputs_go),
        cmocka_unit_test(two_reductions_of_the_same_parts_go_hand_in_hand),
        cmocka_unit_test(a_map_reduce_keeps_no_more_than_the_maps),
        cmocka_unit_test(a_stencil_is_walked_along_its_front),
        cmocka_unit_test(independent_chains_run_one_after_another),
        cmocka_unit_test(a_cross_validation_shares_its_folds),
        cmocka_unit_test(deep_graphs_need_no_deep_stack),
        cmocka_unit_test(the_order_is_topological_and_keeps_exactly_the_ancestors),
        cmocka_unit_test(a_cycle_is_found_wherever_it_is),
        cmocka_unit_test(bytes_bring_back_the_same_graph),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(definitions_do_not_depend_on_the_order_of_submission),
        cmocka_unit_test(a_changed_literal_changes_exactly_its_descendants),
        cmocka_unit_test(ancestors_and_descendants_mirror_each_other),
        cmocka_unit_test(why_a_key_runs_or_never_will_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
