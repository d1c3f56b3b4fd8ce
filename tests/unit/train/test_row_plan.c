/* train/feed/row_plan: workers train on the partitions (parts) of their own node. Each worker has
 * as many rows as in an even split. A node gets rows from other nodes only if its own rows are too
 * few for its workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "train/feed/row_plan.h"

#define PARTS_MAX 64u
#define WORKERS_MAX 12u

struct facts {
    struct mr_row_part parts[PARTS_MAX];
    uint32_t parts_count;
    uint32_t node_of[WORKERS_MAX];
    uint32_t workers;
};

static uint64_t rows_of(const struct facts *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->parts_count; i++)
        n += f->parts[i].rows;
    return n;
}

/* Adds `count` parts of 100 rows of 8 bytes. `nodes` is a bit set of the nodes that have copies. */
static void add_parts(struct facts *f, uint32_t count, uint64_t nodes)
{
    for (uint32_t i = 0; i < count; i++)
        f->parts[f->parts_count++] = (struct mr_row_part){100, 800, nodes};
}

static void add_workers(struct facts *f, uint32_t count, uint32_t node)
{
    for (uint32_t i = 0; i < count; i++)
        f->node_of[f->workers++] = node;
}

/* Checks that each row belongs to exactly one worker, that rows are numbered without gaps, and that
 * the plan counts the moved bytes and parts right. */
static void check(const struct facts *f, const struct mr_row_plan *p)
{
    uint64_t n = rows_of(f), touched[PARTS_MAX] = {0}, bytes = 0;
    uint8_t *seen = mr_alloc(n + 1);
    uint32_t at = 0, parts = 0;
    assert_int_equal(p->workers, f->workers);
    for (uint32_t w = 0; w < f->workers; w++) {
        uint64_t mine = 0, behind = 0;
        for (; at < p->ends[w]; at++) {
            struct mr_row_range r = p->ranges[at];
            assert_true(r.count && r.first + r.count <= n);
            /* Ranges ascend, and adjacent ranges are merged. */
            assert_true(!mine || r.first > behind);
            behind = r.first + r.count;
            mine += r.count;
            uint64_t start = 0;
            for (uint32_t i = 0; i < f->parts_count; start += f->parts[i++].rows)
                if (f->parts[i].rows && start < behind && start + f->parts[i].rows > r.first)
                    touched[i] |= (uint64_t)1 << f->node_of[w];
            for (uint64_t k = r.first; k < behind; k++)
                assert_int_equal(seen[k]++, 0);
        }
        assert_int_equal(mine, mr_row_plan_quota(n, w, f->workers, NULL));
    }
    for (uint64_t k = 0; k < n; k++)
        assert_int_equal(seen[k], 1);
    for (uint32_t i = 0; i < f->parts_count; i++) {
        uint32_t copies = (uint32_t)__builtin_popcountll(touched[i] & ~f->parts[i].nodes);
        bytes += copies * f->parts[i].bytes;
        parts += copies;
    }
    assert_int_equal(bytes, p->moved_bytes);
    assert_int_equal(parts, p->moved_parts);
    mr_release(seen);
}

/* Makes a plan and checks it. Returns how many parts move to another node. A second plan of the
 * same facts must be the same. */
static uint32_t moved(const struct facts *f)
{
    struct mr_row_plan p, again;
    mr_row_plan_make(f->parts, f->parts_count, f->node_of, f->workers, &p);
    mr_row_plan_make(f->parts, f->parts_count, f->node_of, f->workers, &again);
    assert_int_equal(p.is_even, again.is_even);
    if (!p.is_even) {
        check(f, &p);
        assert_memory_equal(p.ends, again.ends, p.workers * sizeof *p.ends);
        assert_memory_equal(p.ranges, again.ranges, p.ends[p.workers - 1] * sizeof *p.ranges);
    }
    uint32_t parts = p.moved_parts;
    mr_row_plan_fini(&p);
    mr_row_plan_fini(&again);
    return parts;
}

static bool is_even(const struct facts *f)
{
    struct mr_row_plan p;
    mr_row_plan_make(f->parts, f->parts_count, f->node_of, f->workers, &p);
    bool even = p.is_even && !p.ranges && !p.ends;
    mr_row_plan_fini(&p);
    return even;
}

static void test_quotas_are_those_of_the_even_cut(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 200; n += 7)
        for (uint32_t workers = 1; workers <= WORKERS_MAX; workers++) {
            uint64_t at = 0, first = 0;
            for (uint32_t w = 0; w < workers; w++) {
                uint64_t mine = mr_row_plan_quota(n, w, workers, &first);
                assert_int_equal(first, at);
                assert_true(mine == n / workers || mine == n / workers + 1);
                at += mine;
            }
            assert_int_equal(at, n);
        }
}

/* Each node has as many rows as its workers need. So no row moves, in whatever order the parts
 * are. */
static void test_balanced_parts_stay(void **state)
{
    (void)state;
    struct facts f = {0};
    for (uint32_t i = 0; i < 10; i++) {
        add_parts(&f, 1, 1);
        add_parts(&f, 1, 2);
    }
    add_workers(&f, 2, 0);
    add_workers(&f, 2, 1);
    assert_int_equal(moved(&f), 0);
    assert_false(is_even(&f));
    f.node_of[1] = 1; /* the workers need not be in the order of their nodes */
    f.node_of[2] = 0;
    assert_int_equal(moved(&f), 0);
}

/* The nodes have 12 and 8 parts: two parts move. With 13 and 8 parts each node needs 1050 rows, so
 * the second node lacks 250 rows: three parts move. */
static void test_only_what_is_lacking_moves(void **state)
{
    (void)state;
    struct facts f = {0};
    add_parts(&f, 8, 2);
    add_parts(&f, 12, 1);
    add_workers(&f, 2, 0);
    add_workers(&f, 2, 1);
    assert_int_equal(moved(&f), 2);
    add_parts(&f, 1, 1);
    assert_int_equal(moved(&f), 3);
    struct facts skewed = {0}; /* one node has three workers, the other node has one */
    add_parts(&skewed, 8, 1);
    add_parts(&skewed, 8, 2);
    add_workers(&skewed, 3, 1);
    add_workers(&skewed, 1, 0);
    assert_int_equal(moved(&skewed), 4);
}

/* A part with copies on two nodes counts as local on both nodes. */
static void test_copies_count_on_each_node(void **state)
{
    (void)state;
    struct facts f = {0};
    add_parts(&f, 4, 1);
    add_parts(&f, 12, 3);
    add_workers(&f, 1, 0);
    add_workers(&f, 1, 1);
    assert_int_equal(moved(&f), 0);
    /* The second part is on nodes 1 and 2, and node 2 has no other part. So node 1 has to leave
     * that part to node 2. Node 1 takes a part that is on nodes 0 and 1. */
    struct facts chain = {0};
    add_parts(&chain, 1, 3);
    add_parts(&chain, 1, 6);
    add_parts(&chain, 1, 3);
    add_workers(&chain, 1, 0);
    add_workers(&chain, 1, 1);
    add_workers(&chain, 1, 2);
    assert_int_equal(moved(&chain), 0);
}

/* Parts on nodes without workers have to move. They go to the workers that lack rows. */
static void test_parts_from_elsewhere(void **state)
{
    (void)state;
    struct facts f = {0};
    add_parts(&f, 3, 0);
    add_parts(&f, 4, 1);
    add_parts(&f, 1, (uint64_t)1 << 9); /* the part is on a node without workers */
    add_workers(&f, 1, 0);
    add_workers(&f, 1, 1);
    assert_int_equal(moved(&f), 4);
}

/* The second node lacks 300 rows. The plan takes them from the part of 400 rows, not from the part
 * of 600 rows, because a part is always copied whole. */
static void test_few_bytes_are_chosen(void **state)
{
    (void)state;
    struct facts f = {.parts = {{400, 3200, 1}, {600, 4800, 1}, {90, 720, 2}, {90, 720, 2},
                          {90, 720, 2}, {130, 1040, 2}},
        .parts_count = 6};
    add_workers(&f, 1, 0);
    add_workers(&f, 1, 1);
    assert_int_equal(rows_of(&f), 1400);
    assert_int_equal(moved(&f), 1); /* node 1 uses 300 of the 400 rows of parts[0] */
    struct mr_row_plan p;
    mr_row_plan_make(f.parts, f.parts_count, f.node_of, f.workers, &p);
    assert_int_equal(p.moved_bytes, 3200);
    mr_row_plan_fini(&p);
}

/* With one node, with unknown places, or if an even split moves nothing, the plan is the even
 * split. */
static void test_even_where_nothing_is_gained(void **state)
{
    (void)state;
    struct facts f = {0};
    add_parts(&f, 20, 1);
    add_workers(&f, 4, 0);
    assert_true(is_even(&f));
    f.node_of[3] = 1;
    f.node_of[2] = 1;
    for (uint32_t i = 0; i < f.parts_count; i++)
        f.parts[i].nodes = 0;
    assert_true(is_even(&f));
    for (uint32_t i = 0; i < f.parts_count; i++)
        /* The even split leaves each part on its node. */
        f.parts[i].nodes = i < 10 ? 1 : 2;
    assert_true(is_even(&f));
    f.node_of[3] = MR_ROW_PLAN_NODES_MAX;
    assert_true(is_even(&f));
    struct facts nothing = {0};
    add_workers(&nothing, 1, 0);
    add_workers(&nothing, 1, 1);
    assert_true(is_even(&nothing));
}

/* Checks an upper bound of the moved bytes, 8 for each row. Each part has one copy. A node fetches
 * the rows that it lacks. Because only whole parts move, the node may fetch surplus rows, too. From
 * each other node these are fewer rows than the largest part has. */
static void bound(const struct facts *f, uint32_t nodes)
{
    struct mr_row_plan p;
    uint64_t n = rows_of(f), lacks = 0, largest = 0;
    uint32_t short_of = 0;
    mr_row_plan_make(f->parts, f->parts_count, f->node_of, f->workers, &p);
    for (uint32_t k = 0; k < nodes; k++) {
        uint64_t wanted = 0, here = 0;
        for (uint32_t w = 0; w < f->workers; w++)
            if (f->node_of[w] == k) wanted += mr_row_plan_quota(n, w, f->workers, NULL);
        for (uint32_t i = 0; i < f->parts_count; i++)
            if (f->parts[i].nodes >> k & 1) here += f->parts[i].rows;
        short_of += wanted > here;
        lacks += wanted > here ? wanted - here : 0;
    }
    for (uint32_t i = 0; i < f->parts_count; i++)
        largest = MR_MAX(largest, f->parts[i].rows);
    assert_true(p.moved_bytes <= 8 * (lacks + short_of * nodes * largest));
    if (!lacks) assert_int_equal(p.moved_bytes, 0);
    mr_row_plan_fini(&p);
}

static void test_at_random(void **state)
{
    (void)state;
    struct mr_rng rng;
    mr_rng_init(&rng, 11);
    for (uint32_t round = 0; round < 3000; round++) {
        struct facts f = {.parts_count = 1 + (uint32_t)mr_rng_below(&rng, PARTS_MAX),
            .workers = 1 + (uint32_t)mr_rng_below(&rng, WORKERS_MAX)};
        uint32_t nodes = 1 + (uint32_t)mr_rng_below(&rng, MR_MIN(f.workers, 5u));
        bool single = mr_rng_below(&rng, 2);
        for (uint32_t w = 0; w < f.workers; w++)
            f.node_of[w] = w < nodes ? w : (uint32_t)mr_rng_below(&rng, nodes);
        for (uint32_t i = 0; i < f.parts_count; i++) {
            uint64_t rows = mr_rng_below(&rng, 40);
            uint64_t set = mr_rng_below(&rng, (uint64_t)2 << nodes);
            if (single) set = (uint64_t)1 << mr_rng_below(&rng, nodes);
            f.parts[i] = (struct mr_row_part){rows, 8 * rows, set};
        }
        (void)moved(&f);
        if (single) bound(&f, nodes);
    }
}

/* The parts lie on more different sets of nodes than the plan distinguishes. The plan still uses
 * one copy of each part. */
static void test_many_sets_of_nodes(void **state)
{
    (void)state;
    uint32_t count = 4096;
    struct mr_row_part *parts = mr_alloc_array(count, sizeof *parts);
    uint32_t node_of[16];
    for (uint32_t w = 0; w < MR_ARRAY_LEN(node_of); w++)
        node_of[w] = w;
    for (uint32_t i = 0; i < count; i++)
        parts[i] = (struct mr_row_part){1, 8, (uint64_t)1 << i % 16 | (i << 4 & 0xffff)};
    struct mr_row_plan p;
    mr_row_plan_make(parts, count, node_of, 16, &p);
    assert_false(p.is_even);
    assert_true(p.moved_parts < count);
    mr_row_plan_fini(&p);
    mr_release(parts);
}

/* Forged numbers in a collection must not end the process. */
static void test_more_rows_than_there_can_be(void **state)
{
    (void)state;
    struct facts f = {.parts_count = 2};
    add_workers(&f, 4, 0);
    add_workers(&f, 4, 1);
    f.parts[0] = (struct mr_row_part){(uint64_t)1 << 62, 800, 1};
    f.parts[1] = (struct mr_row_part){((uint64_t)1 << 61) + 5, 800, 1};
    assert_true(is_even(&f));
    f.parts[0].rows = f.parts[1].rows = UINT64_MAX;
    assert_true(is_even(&f));
    /* this is the largest sum that can still be divided */
    f.parts[0].rows = ((uint64_t)1 << 61) - 1;
    f.parts[1].rows = 0;
    f.parts[0].nodes = 2;
    struct mr_row_plan p;
    mr_row_plan_make(f.parts, f.parts_count, f.node_of, f.workers, &p);
    mr_row_plan_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotas_are_those_of_the_even_cut),
        cmocka_unit_test(test_balanced_parts_stay),
        cmocka_unit_test(test_only_what_is_lacking_moves),
        cmocka_unit_test(test_copies_count_on_each_node),
        cmocka_unit_test(test_parts_from_elsewhere),
        cmocka_unit_test(test_few_bytes_are_chosen),
        cmocka_unit_test(test_even_where_nothing_is_gained),
        cmocka_unit_test(test_at_random),
        cmocka_unit_test(test_many_sets_of_nodes),
        cmocka_unit_test(test_more_rows_than_there_can_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
