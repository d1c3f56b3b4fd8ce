/* A whole graph: it is written as bytes and read back as the same graph, and damaged bytes are
 * refused. A changed literal changes the hashes of exactly its descendants. A graph says why a
 * key runs or never will. */
#include "tests/unit/graph/fixture.h"

#include "graph/bytes/bytes.h"
#include "tests/unit/graph/shapes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

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

/* Returns a graph of the shape. The nodes are defined in an order that is rotated by `rotate`. */
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
    mr_graph_rehash(g);
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
        mr_graph_rehash(again);
        assert_memory_equal(g->hash, again->hash, g->nodes_count * sizeof *g->hash);
        assert_int_equal(g->tasks_count, again->tasks_count);
        /* Adds the same columns to a builder, as if a client had sent them. */
        struct mr_builder *b = mr_builder_new();
        if (mr_builder_add_bytes(b, mr_buf_str(&once), &e)) fail_msg("%s", e.text);
        if (mr_graph_build(&b, &fixture_catalogue, &added, &e)) fail_msg("%s", e.text);
        assert_int_equal(added->nodes_count, g->nodes_count);
        mr_graph_rehash(added);
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
    for (size_t i = 0; i < b.n; i++) { /* damages each byte, and cuts the bytes at each length */
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
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct shape *s = random_shape(seed, false);
        struct mr_graph *g = graph_of(s, seed, 0);
        bool below[512] = {false}; /* by node: the node is the leaf or one of its descendants */
        uint32_t leaf = 0;
        assert_true(g->nodes_count <= MR_ARRAY_LEN(below));
        while (g->kind[leaf] != MR_NODE_LITERAL)
            leaf++;
        mr_graph_hash *before = mr_copy(g->hash, g->nodes_count * sizeof *g->hash);
        mr_graph_set_hash(g, leaf, (mr_graph_hash){seed, 1});
        mr_graph_rehash(g);
        for (uint32_t v = 0; v < g->nodes_count; v++) { /* a node comes after its inputs */
            uint32_t n;
            const uint32_t *inputs = mr_graph_inputs(g, v, &n);
            below[v] = v == leaf;
            for (uint32_t i = 0; i < n; i++)
                below[v] |= below[inputs[i]];
            assert_int_equal(below[v], !mr_graph_hash_eq(before[v], g->hash[v]));
        }
        mr_release(before);
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
        cmocka_unit_test(bytes_bring_back_the_same_graph),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(definitions_do_not_depend_on_the_order_of_submission),
        cmocka_unit_test(a_changed_literal_changes_exactly_its_descendants),
        cmocka_unit_test(why_a_key_runs_or_never_will_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
