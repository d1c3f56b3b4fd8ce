#include "tests/unit/graph/fixture.h"
#include "tests/unit/graph/same.h"

#include "base/rng.h"

#include "base/limits.h"
#include "graph/args.h"
#include "graph/bytes/bytes.h"
#include "graph/json/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

static struct mr_graph *graph_of(const char *json)
{
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    int err = mr_graph_from_json(mr_str(json), &fixture_catalogue, &g, &e);
    if (err) fail_msg("%s: %s", json, e.text);
    mr_graph_check(g);
    return g;
}

static uint32_t node_of(struct mr_graph *g, const char *key)
{
    uint32_t v = mr_graph_find(g, mr_str(key));
    if (v == MR_NODE_NONE) fail_msg("no key %s", key);
    return v;
}

static uint32_t input_of(struct mr_graph *g, const char *key, uint32_t slot)
{
    uint32_t count = 0;
    const uint32_t *inputs = mr_graph_inputs(g, node_of(g, key), &count);
    assert_true(slot < count);
    return inputs[slot];
}

/* A pack as text, for comparison: lists in [], maps in {}, input slots as $n. */
static void show(struct mr_pack_reader *r, struct mr_buf *out)
{
    struct mr_pack_item item;
    assert_int_equal(mr_pack_next(r, &item), 0);
    switch (item.type) {
    case MR_PACK_NIL: mr_buf_add_text(out, "null"); return;
    case MR_PACK_BOOL: mr_buf_add_text(out, item.boolean ? "true" : "false"); return;
    case MR_PACK_INT: mr_buf_printf(out, "%lld", (long long)item.i); return;
    case MR_PACK_UINT: mr_buf_printf(out, "%llu", (unsigned long long)item.u); return;
    case MR_PACK_FLOAT: mr_buf_printf(out, "%gf", item.f); return;
    case MR_PACK_TEXT: mr_buf_printf(out, "'%.*s'", MR_STR_ARG(item.bytes)); return;
    case MR_PACK_BYTES: mr_buf_add_text(out, "bytes"); return;
    case MR_PACK_EXT: mr_buf_printf(out, "$%u", mr_pack_input_slot(&item)); return;
    case MR_PACK_LIST:
    case MR_PACK_MAP: break;
    }
    bool map = item.type == MR_PACK_MAP;
    mr_buf_add_text(out, map ? "{" : "[");
    for (uint32_t i = 0; i < item.count; i++) {
        if (i) mr_buf_add_text(out, ",");
        if (map) {
            show(r, out);
            mr_buf_add_text(out, ":");
        }
        show(r, out);
    }
    mr_buf_add_text(out, map ? "}" : "]");
}

static void args_are(struct mr_graph *g, const char *key, const char *want)
{
    struct mr_str pack = mr_graph_args(g, node_of(g, key));
    assert_int_equal(mr_pack_check(pack, MR_TASK_INPUTS_MAX, NULL), 0);
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    struct mr_pack_reader r = mr_pack_read(pack);
    show(&r, &b);
    mr_buf_add_byte(&b, 0);
    assert_string_equal((const char *)b.p, want);
    mr_buf_fini(&b);
}

static bool same(const char *a, const char *b, const char *key)
{
    struct mr_graph *x = graph_of(a), *y = graph_of(b);
    mr_graph_rehash(x);
    mr_graph_rehash(y);
    bool eq = mr_graph_hash_eq(x->hash[node_of(x, key)], y->hash[node_of(y, key)]);
    mr_graph_free(&x);
    mr_graph_free(&y);
    return eq;
}

static const char canonical[] =
    "{\"tasks\": {\"x\": {\"value\": 1}, \"y\": {\"op\": \"inc\", \"args\": [{\"ref\": \"x\"}]},"
    " \"z\": {\"op\": \"add\", \"args\": [{\"ref\": \"x\"}, {\"ref\": \"y\"}], \"retries\": 2}},"
    " \"targets\": [\"z\"]}";
static const char dialect[] = "{\"dsk\": {\"x\": 1, \"y\": [\"inc\", \"x\"], \"z\": [\"add\", "
                              "\"x\", \"y\"]}, \"targets\": [\"z\"]}";

static void the_canonical_form_becomes_nodes_in_order(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(canonical);
    assert_int_equal(g->nodes_count, 3);
    assert_int_equal(g->tasks_count, 2);
    assert_true(fixture_key_is(g, 0, "x") && fixture_key_is(g, 1, "y"));
    assert_true(fixture_key_is(g, 2, "z"));
    assert_int_equal(g->kind[0], MR_NODE_LITERAL);
    assert_true(mr_str_eq(mr_graph_op(g, 2), MR_STR("add")));
    args_are(g, "x", "1");
    args_are(g, "z", "[$0,$1]");
    assert_int_equal(mr_graph_options(g, 2)->retries, 2);
    assert_null(mr_graph_options(g, 1));
    assert_int_equal(g->targets_count, 1);
    assert_int_equal(g->targets[0], 2);
    mr_graph_free(&g);
}

static void the_dialect_means_the_same_as_the_canonical_form(void **state)
{
    (void)state;
    assert_true(same(canonical, dialect, "z"));
}

static void nested_tasks_become_nodes_under_the_outer_key(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of("{\"dsk\": {\"x\": 1, \"z\": [\"add\", [\"inc\", [\"inc\", "
                                  "\"x\"]], [\"sum\", [\"x\", 2]]]}}");
    assert_int_equal(g->tasks_count, 4);
    args_are(g, "z", "[$0,$1]");
    args_are(g, "z#1", "[[$0,2]]");
    assert_int_equal(input_of(g, "z", 0), node_of(g, "z#0"));
    assert_int_equal(input_of(g, "z#0", 0), node_of(g, "z#0#0"));
    mr_graph_free(&g);
    g = graph_of("{\"tasks\": {\"z#0\": {\"value\": 5}, \"z\": {\"op\": \"add\", \"args\": [1, "
                 "{\"op\": \"add\", \"args\": [{\"ref\": \"z#0\"}], \"kwargs\": {\"b\": 1}}]}}}");
    args_are(g, "z#1", "{'':[$0],'b':1}");
    mr_graph_free(&g);
}

static void lists_and_dicts_may_hold_references(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"dsk\": {\"a\": 1, \"b\": 2, \"w\": [\"a\", {\"k\": \"b\", \"l\": [\"a\", \"q\"]}],"
        "\"d\": {\"p\": 1, \"q\": [true, null, -3, 1.0, 18446744073709551615]}, \"e\": \"b\"}}");
    args_are(g, "w", "[[$0,{'k':$1,'l':[$0,'q']}]]");
    assert_true(mr_str_eq(mr_graph_op(g, node_of(g, "w")), MR_STR("identity")));
    assert_int_equal(g->kind[node_of(g, "d")], MR_NODE_LITERAL);
    args_are(g, "d", "{'p':1,'q':[true,null,-3,1f,18446744073709551615]}");
    args_are(g, "e", "[$0]");
    mr_graph_free(&g);
}

static void a_literal_escapes_everything(void **state)
{
    (void)state;
    struct mr_graph *g =
        graph_of("{\"params\": {}, \"dsk\": {\"x\": 1, \"y\": [\"sum\", {\"literal\": [\"inc\", "
                 "\"x\", {\"ref\": \"x\"}, \"${n}\"]}], \"z\": {\"literal\": \"x\"}}}");
    args_are(g, "y", "[['inc','x',{'ref':'x'},'${n}']]");
    args_are(g, "z", "'x'");
    mr_graph_free(&g);
}

static void a_repeated_input_takes_one_slot(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of("{\"dsk\": {\"x\": 1, \"y\": [\"add\", \"x\", [\"x\", \"x\"]]}}");
    uint32_t count = 0;
    (void)mr_graph_inputs(g, node_of(g, "y"), &count);
    assert_int_equal(count, 1);
    args_are(g, "y", "[$0,[$0,$0]]");
    mr_graph_free(&g);
}

static void stored_objects_and_names_are_shared_nodes(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"tasks\": {\"a\": {\"op\": \"add\", \"args\": [{\"name\": \"images\"}, {\"object\": "
        "\"000000000000000100000000000000ff\"}]}, \"b\": {\"op\": \"inc\", \"args\": [{\"name\": "
        "\"images\"}]}, \"c\": {\"name\": \"labels\"}, \"name:images\": {\"value\": 3}}}");
    assert_int_equal(input_of(g, "a", 0), input_of(g, "b", 0));
    assert_int_equal(g->kind[input_of(g, "a", 0)], MR_NODE_NAME);
    assert_true(mr_str_eq(mr_graph_text(g, input_of(g, "a", 0)), MR_STR("images")));
    assert_true(fixture_key_is(g, input_of(g, "a", 0), "name:images#0"));
    assert_int_equal(g->kind[input_of(g, "a", 1)], MR_NODE_OBJECT);
    assert_int_equal(mr_graph_object(g, input_of(g, "a", 1)).number, 255);
    assert_int_equal(g->kind[node_of(g, "c")], MR_NODE_NAME);
    mr_graph_free(&g);
}

static void named_arguments_are_sorted(void **state)
{
    (void)state;
    const char a[] = "{\"tasks\": {\"y\": {\"op\": \"any\", \"args\": [1], \"kwargs\": {\"b\": 2, "
                     "\"a\": [3]}}}}";
    const char b[] = "{\"tasks\": {\"y\": {\"op\": \"any\", \"kwargs\": {\"a\": [3], \"b\": 2}, "
                     "\"args\": [1]}}}";
    struct mr_graph *g = graph_of(a);
    args_are(g, "y", "{'':[1],'a':[3],'b':2}");
    struct mr_args args;
    assert_int_equal(mr_args_open(mr_graph_args(g, 0), &args, NULL), 0);
    assert_int_equal(args.positional_count, 1);
    assert_int_equal(args.named_count, 2);
    struct mr_pack_item name;
    assert_int_equal(mr_pack_next(&args.named, &name), 0);
    assert_true(mr_str_eq(name.bytes, MR_STR("a")));
    mr_graph_free(&g);
    assert_true(same(a, b, "y"));
}

static void options_are_read_and_shared(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"tasks\": {\"a\": {\"op\": \"inc\", \"args\": [1], \"retries\": 3, \"priority\": -7, "
        "\"timeout_s\": 0.5, \"workers\": [\"w1\", \"w2\"], \"allow_other_workers\": true, "
        "\"resources\": {\"gpu\": 0.5, \"ram\": 2}, \"pure\": false, \"persist\": \"out\", "
        "\"long_running\": true}, \"b\": {\"op\": \"inc\", \"args\": [2], \"retries\": 1}, "
        "\"c\": {\"op\": \"inc\", \"args\": [3], \"retries\": 1, \"workers\": \"w9\"},"
        "\"d\": {\"op\": \"inc\", \"args\": [4], \"retries\": 1}}}");
    const struct mr_task_options *o = mr_graph_options(g, node_of(g, "a"));
    assert_int_equal(o->given, MR_OPTION_ALL);
    assert_int_equal(o->retries, 3);
    assert_int_equal(o->priority, -7);
    assert_int_equal(o->timeout, 500 * MR_MS);
    assert_int_equal(o->workers_count, 2);
    assert_true(mr_str_eq(o->workers[1], MR_STR("w2")));
    assert_true(o->allow_other_workers && o->persist && o->long_running && !o->pure);
    assert_int_equal(o->resources[0].amount_micro, 500000);
    assert_true(mr_str_eq(o->persist_name, MR_STR("out")));
    assert_false(mr_graph_is_pure(g, node_of(g, "a")));
    assert_true(mr_graph_is_pure(g, node_of(g, "b")));
    assert_ptr_equal(mr_graph_options(g, node_of(g, "b")), mr_graph_options(g, node_of(g, "d")));
    assert_int_equal(g->options_count, 3);
    mr_graph_free(&g);
}

static void the_jobs_own_fields_are_read(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"dsk\": {\"x\": 1}, \"name\": \"demo ${v}\", \"labels\": {\"team\": \"a\", \"run\": "
        "\"\"}, \"namespace\": \"ns\", \"priority\": 5, \"deadline_s\": 60, \"on_error\": "
        "\"continue\", \"params\": {\"v\": 2}, \"request_id\": \"r-1\", \"fuse\": false}");
    assert_true(mr_str_eq(g->job.name, MR_STR("demo 2")));
    assert_true(mr_str_eq(g->job.name_space, MR_STR("ns")));
    assert_true(mr_str_eq(g->job.request_id, MR_STR("r-1")));
    assert_int_equal(g->job.labels_count, 2);
    assert_true(mr_str_eq(g->job.labels[0].value, MR_STR("a")));
    assert_int_equal(g->job.priority, 5);
    assert_int_equal(g->job.deadline, 60 * MR_SECOND);
    assert_int_equal(g->job.on_error, MR_ON_ERROR_CONTINUE);
    assert_int_equal(g->job.params.n, 4);
    assert_true(g->job.unfused);
    mr_graph_free(&g);
}

static void a_loop_makes_a_task_for_each_value(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"params\": {\"n\": 3, \"p\": \"part\"}, \"tasks\": {"
        "\"${p}-${i}\": {\"op\": \"add\", \"args\": [\"${i}\", \"x${i}/$${i}\"], \"for\": {\"i\": "
        "\"${n}\"}, \"persist\": \"kept-${i}\"},"
        "\"all\": {\"op\": \"sum\", \"args\": {\"each\": {\"ref\": \"${p}-${k}\"}, \"for\": "
        "{\"k\": \"${n}\"}}},"
        "\"grid\": {\"op\": \"sum\", \"args\": [{\"each\": [\"${a}\", \"${b}\"], \"for\": {\"a\": "
        "2, \"b\": [\"u\", 1.5, null]}}, {\"each\": 1, \"for\": {\"q\": 0}}]}},"
        "\"targets\": [\"all\", \"grid\", {\"each\": \"part-${i}\", \"for\": {\"i\": 2}}]}");
    assert_int_equal(g->tasks_count, 5);
    args_are(g, "part-2", "[2,'x2/${i}']");
    args_are(g, "all", "[$0,$1,$2]");
    args_are(g, "grid", "[[[0,'u'],[0,1.5f],[0,null],[1,'u'],[1,1.5f],[1,null]],[]]");
    assert_true(
        mr_str_eq(mr_graph_options(g, node_of(g, "part-1"))->persist_name, MR_STR("kept-1")));
    assert_int_equal(g->targets_count, 4);
    mr_graph_free(&g);
}

static void tasks_nest_inside_each(void **state)
{
    (void)state;
    struct mr_graph *g =
        graph_of("{\"dsk\": {\"x-0\": 1, \"x-1\": 2, \"y\": [\"sum\", {\"each\": [\"inc\", "
                 "\"x-${i}\"], \"for\": {\"i\": 2}}]}}");
    args_are(g, "y", "[[$0,$1]]");
    assert_int_equal(input_of(g, "y#1", 0), node_of(g, "x-1"));
    mr_graph_free(&g);
}

static void what_a_parameter_holds_is_data(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"params\": {\"l\": [\"${l}\", {\"ref\": \"x\"}], \"r\": 0.1}, \"dsk\": {\"x\": 1, "
        "\"y\": [\"sum\", \"${l}\", \"${r}\", \"at ${r}\"]}, \"targets\": [\"y\"]}");
    args_are(g, "y", "[['${l}',{'ref':'x'}],0.1f,'at 0.1']");
    mr_graph_free(&g);
}

static void without_params_or_loops_a_text_is_left_alone(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of("{\"dsk\": {\"x\": \"${HOME} $${\"}}");
    args_are(g, "x", "'${HOME} $${'");
    mr_graph_free(&g);
}

static void definitions_are_hashed_where_somebody_compares_them(void **state)
{
    (void)state;
    struct mr_graph *plain = graph_of("{\"dsk\": {\"x\": [\"inc\", 1]}}");
    assert_null(plain->hash);
    struct mr_graph *shared = graph_of("{\"namespace\": \"n\", \"dsk\": {\"x\": [\"inc\", 1]}}");
    assert_non_null(shared->hash);
    struct mr_graph *kept = graph_of("{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], "
                                     "\"persist\": \"p\"}}}");
    assert_non_null(kept->hash);
    mr_graph_free(&plain);
    mr_graph_free(&shared);
    mr_graph_free(&kept);
}

static void an_unknown_key_in_a_namespace_is_an_alias(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of("{\"namespace\": \"n\", \"tasks\": {\"y\": {\"op\": \"inc\", "
                                  "\"args\": [{\"ref\": \"x\"}]}}}");
    assert_int_equal(g->kind[0], MR_NODE_ALIAS);
    assert_true(mr_str_eq(mr_graph_text(g, 0), MR_STR("x")));
    mr_graph_hash before = g->hash[1];
    mr_graph_set_hash(g, 0, (mr_graph_hash){1, 2});
    mr_graph_rehash(g);
    assert_false(mr_graph_hash_eq(before, g->hash[1]));
    assert_int_equal(g->hash[0].hi, 1);
    mr_graph_free(&g);
}

static void no_targets_means_all_that_nothing_needs(void **state)
{
    (void)state;
    struct mr_graph *g =
        graph_of("{\"dsk\": {\"x\": 1, \"y\": [\"inc\", \"x\"], \"z\": [\"inc\", \"x\"]}}");
    assert_int_equal(g->targets_count, 2);
    mr_graph_free(&g);
}

static void culled_keys_are_remembered(void **state)
{
    (void)state;
    struct mr_graph *g =
        graph_of("{\"dsk\": {\"x\": 1, \"other\": [\"inc\", 5], \"y\": [\"inc\", \"x\"], "
                 "\"most\": [\"inc\", \"other\"]}, \"targets\": [\"y\", \"y\"]}");
    assert_int_equal(g->nodes_count, 2);
    assert_int_equal(g->culled_count, 2);
    assert_int_equal(g->targets_count, 1);
    assert_true(mr_graph_was_culled(g, MR_STR("other")));
    assert_false(mr_graph_was_culled(g, MR_STR("y")));
    assert_int_equal(mr_graph_find(g, MR_STR("other")), MR_NODE_NONE);
    mr_graph_free(&g);
}

static void definitions_differ_where_values_would(void **state)
{
    (void)state;
    const char base[] = "{\"dsk\": {\"x\": 1, \"y\": [\"inc\", \"x\"]}}";
    static const char *const others[] = {
        "{\"dsk\": {\"x\": 1.0, \"y\": [\"inc\", \"x\"]}}",
        "{\"dsk\": {\"x\": \"1\", \"y\": [\"inc\", \"x\"]}}",
        "{\"dsk\": {\"x\": [1], \"y\": [\"inc\", \"x\"]}}",
        "{\"dsk\": {\"x\": 1, \"y\": [\"sum\", \"x\"]}}",
        "{\"dsk\": {\"x\": 1, \"y\": [\"inc\", 1]}}",
        "{\"dsk\": {\"x\": 1, \"y\": [\"inc\", [\"x\"]]}}",
        "{\"dsk\": {\"x\": 1, \"y\": {\"op\": \"inc\", \"args\": [\"x\"], \"pure\": false}}}",
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++)
        assert_false(same(base, others[i], "y"));
    static const char renamed[] = "{\"dsk\": {\"y\": [\"inc\", \"k\"], \"k\": 1}}";
    static const char optioned[] =
        "{\"dsk\": {\"x\": 1, \"y\": {\"op\": \"inc\", \"args\": [\"x\"], \"retries\": 5, "
        "\"persist\": \"p\", \"pure\": true}}}";
    static const char beside[] =
        "{\"dsk\": {\"x\": 1, \"q\": 2, \"y\": [\"inc\", \"x\"], \"r\": [\"inc\", \"q\"]}}";
    static const char *const equal[] = {renamed, optioned, beside};
    for (size_t i = 0; i < MR_ARRAY_LEN(equal); i++)
        assert_true(same(base, equal[i], "y"));
}

/* A text of many entries in all their forms. */
static void write_many(struct mr_buf *b, const char *head, uint32_t n)
{
    mr_buf_add_text(b, head);
    for (uint32_t i = 0; i < n; i++) {
        switch (i % 6) {
        case 0: mr_buf_printf(b, "\"k%u\": %u", i, i); break;
        case 1: mr_buf_printf(b, "\"k%u\":[\"sum\",\"k%u\", \"}],{\"]", i, i - 1); break;
        case 2: mr_buf_printf(b, " \"\\u006b%u\" : \"\\\"for\\\\\"", i); break;
        case 3:
            mr_buf_printf(b,
                "\"k%u-${i}\": {\"op\": \"inc\", \"args\": [\"${i}\"], \"for\": "
                "{\"i\": 3}}",
                i);
            break;
        case 4:
            mr_buf_printf(b, "\"k%u\": {\"a\": [\"k%u\"], \"for\": 1}", i, (n - 1) / 6 * 6);
            break;
        default: mr_buf_printf(b, "\"k%u\": null\n", i); break;
        }
        mr_buf_add_text(b, i + 1 < n ? "," : "}");
    }
    mr_buf_add_text(b, ", \"params\": {}, \"targets\": [\"k1\", \"k4\", \"k10\", \"k30\"]}");
}

/* One of many entries as they mostly are, and some that are not. */
static void write_plain(struct mr_buf *b, uint32_t i, uint32_t n, bool dsk, struct mr_rng *r)
{
    uint32_t p = (uint32_t)mr_rng_below(r, i + 1), what = (uint32_t)mr_rng_below(r, 9);
    if (p == i) p = 0;
    if (i) mr_buf_add_text(b, ",");
    mr_buf_printf(b, "\"k%u\": ", i);
    if (!i || what == 0)
        mr_buf_printf(b, dsk ? "%u" : "{\"value\": %u}", i);
    else if (what == 1)
        mr_buf_printf(b,
            dsk ? "[\"sum\", \"k%u\", \"k%u#0\", -1.5, null]"
                : "{\"op\": \"sum\", \"args\": [{\"ref\": \"k%u\"}, \"k%u#0\", -1.5, null]}",
            p, p);
    else if (what == 2)
        mr_buf_printf(b,
            dsk ? "[\"add\", [\"inc\", \"k%u\"], true]"
                : "{\"op\": \"add\", \"args\": [{\"op\": \"inc\", \"args\": [{\"ref\": \"k%u\"}]}, true]}",
            p);
    else if (what == 3)
        mr_buf_printf(b,
            dsk ? "[\"any\", {\"a\": \"k%u\"}, \"outside-%u\"]"
                : "{\"op\": \"any\", \"args\": [{\"a\": {\"ref\": \"k%u\"}}], \"kwargs\": {\"x\": %u}, \"retries\": 2}",
            p, n);
    else if (what == 4 && !dsk)
        mr_buf_printf(b,
            "{\"op\": \"sum\", \"args\": [[{\"ref\": \"k%u\"}, [{\"ref\": \"out-%u\"}, []]]]}", p,
            i % 7);
    else if (what == 5)
        mr_buf_printf(b,
            dsk ? "[\"sum\", [\"k%u\", 7]]"
                : "{\"args\": [[{\"ref\": \"k%u\"}, 7]], \"op\": \"sum\"}",
            p);
    else
        mr_buf_printf(b,
            dsk ? "[\"add\", \"k%u\", \"k%u\"]"
                : "{\"op\": \"add\", \"args\": [{\"ref\": \"k%u\"}, {\"ref\": \"k%u\"}]}",
            p, mr_rng_below(r, 2) ? p : 0);
}

static int from_pieces(struct mr_str text, struct mr_rng *r, const struct mr_json_limits *limits,
    struct mr_graph **out, struct mr_error *e)
{
    struct mr_json_ahead *a = mr_json_ahead_new_within(limits);
    size_t most = 1 + mr_rng_below(r, 1u << mr_rng_below(r, 14));
    for (size_t at = 0; at < text.n;) {
        size_t n = 1 + (size_t)mr_rng_below(r, most);
        n = MR_MIN(n, text.n - at);
        struct mr_buf piece;
        mr_buf_init(&piece, n);
        mr_buf_add(&piece, text.p + at, n);
        mr_json_ahead_feed(a, &fixture_catalogue, &piece);
        at += n;
    }
    int err = mr_json_ahead_end(a, &fixture_catalogue, out, e);
    mr_json_ahead_free(&a);
    return err;
}

static void many_hands_make_the_same_graph(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct mr_buf text, bytes[3];
        struct mr_rng r;
        struct mr_graph *whole = NULL, *pieces = NULL;
        bool dsk = seed % 2;
        mr_rng_init(&r, seed);
        mr_buf_init(&text, 1 << 20);
        mr_buf_printf(&text, "{\"namespace\": \"n\", \"%s\": {", dsk ? "dsk" : "tasks");
        uint32_t n = 2 + (uint32_t)mr_rng_below(&r, 300);
        for (uint32_t i = 0; i < n; i++)
            write_plain(&text, i, n, dsk, &r);
        mr_buf_printf(&text, "}%s}", seed % 3 ? "" : ", \"targets\": [\"k1\"]");
        for (int i = 0; i < 3; i++) {
            const struct mr_json_limits limits = {MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX,
                i ? 64 : 1 << 20, i == 2 ? &fixture_parallel : NULL};
            struct mr_error e = {0};
            mr_graph_free(&whole);
            if (mr_graph_from_json_within(
                    mr_buf_str(&text), &fixture_catalogue, &limits, &whole, &e))
                fail_msg("%s\n%.*s", e.text, (int)text.n, (char *)text.p);
            mr_graph_check(whole);
            mr_buf_init(&bytes[i], 1 << 20);
            assert_int_equal(mr_graph_to_bytes(whole, &bytes[i], NULL), 0);
        }
        for (int i = 2; i >= 0; i--) {
            if (!mr_str_eq(mr_buf_str(&bytes[0]), mr_buf_str(&bytes[i])))
                fail_msg("seed %u, way %d", (unsigned)seed, i);
            mr_buf_fini(&bytes[i]);
        }
        const struct mr_json_limits limits = {
            MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX, 64, &fixture_parallel};
        assert_int_equal(from_pieces(mr_buf_str(&text), &r, &limits, &pieces, NULL), MR_OK);
        mr_graph_check(pieces);
        if (!same_graph(whole, pieces)) fail_msg("seed %u, in pieces", (unsigned)seed);
        mr_graph_free(&whole);
        mr_graph_free(&pieces);
        mr_buf_fini(&text);
    }
}

static void many_hands_refuse_what_is_too_much_for_a_task(void **state)
{
    (void)state;
    enum { NUMBERS = 150000 }; /* nine bytes each, of four of text */
    struct mr_buf text;
    mr_buf_init(&text, 1 << 20);
    mr_buf_add_text(&text, "{\"tasks\": {");
    for (uint32_t i = 0; i < 32; i++)
        mr_buf_printf(&text, "\"k%u\": {\"op\": \"sum\", \"args\": [1]}, ", i);
    mr_buf_add_text(&text, "\"large\": {\"op\": \"sum\", \"args\": [[0");
    for (uint32_t i = 0; i < NUMBERS; i++)
        mr_buf_add_text(&text, ",9e9");
    mr_buf_add_text(&text, "]]}}}");
    for (int i = 0; i < 2; i++) {
        const struct mr_json_limits limits = {
            MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX, 64, i ? &fixture_parallel : NULL};
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        assert_int_equal(
            mr_graph_from_json_within(mr_buf_str(&text), &fixture_catalogue, &limits, &g, &e),
            MR_ELIMIT);
        assert_non_null(strstr(e.text, "large"));
    }
    mr_buf_fini(&text);
}

/* A text that cannot be read ahead, or not to its end, is refused or taken as ever. */
static void what_does_not_suit_is_read_as_a_whole(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"params\": {\"n\": 3}, \"tasks\": {\"a\": {\"op\": \"inc\", \"args\": [\"${n}\"]}}}",
        "{\"tasks\": {\"a\": {\"op\": \"inc\", \"args\": [\"${n}\"]}}, \"params\": {\"n\": 3}}",
        "{\"tasks\": {\"a-${i}\": {\"op\": \"inc\", \"args\": [1], \"for\": {\"i\": 3}}}}",
        "{\"tasks\": {\"\\u0061\": {\"value\": 1}}, \"targets\": [\"a\"]}", "{\"tasks\": {}}",
        "{\"tasks\": {\"a\": 1}}", "{\"dsk\": {\"a\": 1}, \"tasks\": {}}",
        "{\"dsk\": {\"a\": 1}, \"x\": 2}", "{\"dsk\": {\"a\": 1}}}", "{\"dsk\": {\"a\": 1},}",
        "{\"dsk\": {\"a\": 1, \"a\": 2}}", "{\"dsk\": {\"a\": 1",
        "{\"dsk\": {\"a\": [\"inc\", \"b\"], \"b\": [\"inc\", \"a\"]}}", "{\"dsk\": {\"a\" 1}}", "",
        "[]", "{\"dsk\": {\"a\": [\"nope\", 1]}}", "{\"dsk\": {\"a\": 1, }}",
        "{\"tasks\": {\"a\": {\"ref\": \"b\"}}}"};
    struct mr_rng r;
    mr_rng_init(&r, 7);
    for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++)
        for (int round = 0; round < 20; round++) {
            const struct mr_json_limits limits = {
                MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX, 64, &fixture_parallel};
            struct mr_graph *whole = NULL, *pieces = NULL;
            struct mr_error want = {0}, e = {0};
            int err = mr_graph_from_json(mr_str(texts[i]), &fixture_catalogue, &whole, &want);
            assert_int_equal(from_pieces(mr_str(texts[i]), &r, &limits, &pieces, &e), err);
            assert_string_equal(e.text, want.text);
            assert_int_equal(whole != NULL, pieces != NULL);
            if (whole) assert_true(same_graph(whole, pieces));
            mr_graph_free(&whole);
            mr_graph_free(&pieces);
        }
}

static void slices_and_the_whole_text_mean_the_same(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "{\"dsk\": {", "{\"name\": \"a{\\\"\", \"labels\": {\"tasks\": \"{\"}, \"dsk\" : {"};
    for (uint32_t n = 31; n < 200; n += 7) {
        struct mr_buf text, bytes[3];
        mr_buf_init(&text, 1 << 20);
        write_many(&text, heads[n % 2], n);
        for (int i = 0; i < 3; i++) {
            const struct mr_json_limits limits = {MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX,
                i ? n / 2 : 1 << 20, i == 2 ? &fixture_parallel : NULL};
            struct mr_graph *g = NULL;
            struct mr_error e = {0};
            if (mr_graph_from_json_within(mr_buf_str(&text), &fixture_catalogue, &limits, &g, &e))
                fail_msg("%s\n%.*s", e.text, (int)text.n, (char *)text.p);
            mr_graph_check(g);
            mr_buf_init(&bytes[i], 1 << 20);
            assert_int_equal(mr_graph_to_bytes(g, &bytes[i], NULL), 0);
            mr_graph_free(&g);
        }
        for (int i = 0; i < 3; i++) {
            assert_true(mr_str_eq(mr_buf_str(&bytes[0]), mr_buf_str(&bytes[i])));
            if (i) mr_buf_fini(&bytes[i]);
        }
        mr_buf_fini(&bytes[0]);
        struct mr_graph *g = NULL;
        assert_int_equal(mr_graph_from_json_buf(&text, &fixture_catalogue, NULL, &g, NULL), 0);
        assert_null(text.p);
        mr_graph_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_canonical_form_becomes_nodes_in_order),
        cmocka_unit_test(the_dialect_means_the_same_as_the_canonical_form),
        cmocka_unit_test(nested_tasks_become_nodes_under_the_outer_key),
        cmocka_unit_test(lists_and_dicts_may_hold_references),
        cmocka_unit_test(a_literal_escapes_everything),
        cmocka_unit_test(a_repeated_input_takes_one_slot),
        cmocka_unit_test(stored_objects_and_names_are_shared_nodes),
        cmocka_unit_test(named_arguments_are_sorted),
        cmocka_unit_test(options_are_read_and_shared),
        cmocka_unit_test(the_jobs_own_fields_are_read),
        cmocka_unit_test(a_loop_makes_a_task_for_each_value),
        cmocka_unit_test(tasks_nest_inside_each),
        cmocka_unit_test(what_a_parameter_holds_is_data),
        cmocka_unit_test(without_params_or_loops_a_text_is_left_alone),
        cmocka_unit_test(an_unknown_key_in_a_namespace_is_an_alias),
        cmocka_unit_test(definitions_are_hashed_where_somebody_compares_them),
        cmocka_unit_test(no_targets_means_all_that_nothing_needs),
        cmocka_unit_test(culled_keys_are_remembered),
        cmocka_unit_test(definitions_differ_where_values_would),
        cmocka_unit_test(what_does_not_suit_is_read_as_a_whole),
        cmocka_unit_test(slices_and_the_whole_text_mean_the_same),
        cmocka_unit_test(many_hands_make_the_same_graph),
        cmocka_unit_test(many_hands_refuse_what_is_too_much_for_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
