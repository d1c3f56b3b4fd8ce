/* graph/order: the order in which the nodes of a graph run keeps few values alive at a time.
 * Cycles are found. */
#include "graph/order.h"

#include "base/alloc.h"
#include "tests/unit/graph/shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct mr_order order_of(const struct shape *s)
{
    struct mr_order_graph g = {
        s->n, s->at, s->count, s->inputs, s->inputs_count, s->targets, s->targets_count};
    struct mr_order o;
    assert_true(mr_order_make(&g, &o));
    return o;
}

/* Returns the largest number of values alive at once if the nodes run in the order `order`. A value
 * is alive from its own run to the run of its last user. Values of targets are not counted. */
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

/* Returns the largest number of values alive at once if nodes run breadth first, in the order in
 * which they become ready. */
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
    for (uint32_t k = 0; k < 2; k++) { /* two chains of sums: total = total + part */
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
    for (uint32_t i = 0; i < DEEP; i++) { /* each node needs the next one: the deepest stack */
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
        /* Makes a cycle: adds a node whose input is some node v, and makes the new node an input of
         * v or of an ancestor of v. */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
