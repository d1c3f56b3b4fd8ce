#include "graph_fixture.h"

#include "base/limits.h"
#include "graph/args.h"

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
        "\"continue\", \"params\": {\"v\": 2}, \"request_id\": \"r-1\"}");
    assert_true(mr_str_eq(g->job.name, MR_STR("demo 2")));
    assert_true(mr_str_eq(g->job.name_space, MR_STR("ns")));
    assert_true(mr_str_eq(g->job.request_id, MR_STR("r-1")));
    assert_int_equal(g->job.labels_count, 2);
    assert_true(mr_str_eq(g->job.labels[0].value, MR_STR("a")));
    assert_int_equal(g->job.priority, 5);
    assert_int_equal(g->job.deadline, 60 * MR_SECOND);
    assert_int_equal(g->job.on_error, MR_ON_ERROR_CONTINUE);
    assert_int_equal(g->job.params.n, 4);
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
    static const char *const equal[] = {
        "{\"dsk\": {\"y\": [\"inc\", \"k\"], \"k\": 1}}",
        "{\"dsk\": {\"x\": 1, \"y\": {\"op\": \"inc\", \"args\": [\"x\"], \"retries\": 5, "
        "\"persist\": \"p\", \"pure\": true}}}",
        "{\"dsk\": {\"x\": 1, \"q\": 2, \"y\": [\"inc\", \"x\"], \"r\": [\"inc\", \"q\"]}}",
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(equal); i++)
        assert_true(same(base, equal[i], "y"));
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct {
    const char *json;
    const char *says;
} refused[] = {
    {"", "malformed JSON: line 1, column 1"},
    {"{\"dsk\": {\"x\": 1,\n  \"é\": ?}}", "malformed JSON: line 2, column 8"},
    {"{\"dsk\": {\"x\": 1}} x", "malformed JSON: line 1, column 19"},
    {"{\"dsk\": {\"x\": NaN}}", "NaN and Infinity are not JSON"},
    {"{\"dsk\": {\"x\": -Infinity}}", "NaN and Infinity are not JSON"},
    {"{\"dsk\": {\"x\": \"\xff\"}}", "malformed JSON: line 1, column 16"},
    {"{\"dsk\": {\"x\": 1e999}}", "key \"x\": the number 1e999 does not fit"},
    {"{\"dsk\": {\"x\": 18446744073709551616}}", "key \"x\": the number 18446744073709551616"},
    {"{\"dsk\": {\"x\": -9223372036854775809}}", "key \"x\": the number -9223372036854775809"},
    {"[]", "a job is an object with \"tasks\" or \"dsk\", not a list"},
    {"{}", "neither \"tasks\" nor \"dsk\""},
    {"{\"dsk\": {}, \"tasks\": {}}", "both \"tasks\" and \"dsk\""},
    {"{\"dsk\": {}}", "the graph is empty"},
    {"{\"dsk\": []}", "field \"dsk\" is a list, but must be an object of keys"},
    {"{\"taks\": {}}", "unknown field \"taks\" (did you mean \"tasks\"?)"},
    {"{\"dsk\": {\"x\": 1}, \"dsk\": {}}", "field \"dsk\" appears twice"},
    {"{\"dsk\": {\"x\": 1, \"x\": 2}}", "key \"x\" is defined twice"},
    {"{\"dsk\": {\"x\": {\"a\": 1, \"b\": 2, \"a\": 3}}}",
        "key \"x\": \"a\" appears twice in one object"},
    {"{\"dsk\": {\"\": 1}}", "a key is empty"},
    {"{\"dsk\": {\"a\\u0000b\": 1}}", "key \"a\\x00b\" is not UTF-8 without control characters"},
    {"{\"dsk\": {\"a\\nb\": 1}}", "is not UTF-8 without control characters"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": [\"y\"]}", "target \"y\" is no key of this graph"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": \"x\"}", "field \"targets\" is a text"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": [1]}", "field \"targets\" is an integer"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": []}", "field \"targets\" names no key"},
    {"{\"tasks\": {\"x\": 1}}", "key \"x\": is an integer, but must be an object with \"op\""},
    {"{\"tasks\": {\"x\": {}}}", "key \"x\": has none of \"op\", \"value\""},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"value\": 1}}}", "has both \"op\" and \"value\""},
    {"{\"tasks\": {\"x\": {\"value\": 1, \"retries\": 1}}}", "has \"retries\", which belongs"},
    {"{\"tasks\": {\"x\": {\"value\": 1, \"value\": 1}}}", "\"value\" appears twice"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"retrys\": 1}}}",
        "key \"x\": unknown field or option \"retrys\" (did you mean \"retries\"?)"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": 1}}}", "\"args\" is an integer"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"kwargs\": []}}}",
        "\"kwargs\" is a list"},
    {"{\"tasks\": {\"x\": {\"op\": 3}}}", "\"op\" is an integer, but must be a text"},
    {"{\"tasks\": {\"x\": {\"op\": \"incc\", \"args\": [1]}}}",
        "key \"x\": unknown op \"incc\" (did you mean \"inc\"?)"},
    {"{\"dsk\": {\"x\": [\"icn\", 1]}}", "key \"x\": unknown op \"icn\" (did you mean \"inc\"?)"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\"}}}", "key \"x\": op \"inc\" takes 1 argument, got 0"},
    {"{\"dsk\": {\"x\": [\"inc\", 1, 2]}}", "key \"x\": op \"inc\" takes 1 argument, got 2"},
    {"{\"dsk\": {\"x\": [\"add\", 1]}}", "key \"x\": op \"add\" takes 2 arguments, got 1"},
    {"{\"dsk\": {\"x\": [\"round\"]}}", "op \"round\" takes 1 to 2 arguments, got 0"},
    {"{\"dsk\": {\"x\": [\"add\", 1, [\"inc\"]]}}", "key \"x#0\": op \"inc\" takes 1 argument"},
    {"{\"tasks\": {\"x\": {\"op\": \"round\", \"args\": [1], \"kwargs\": {\"digit\": 1}}}}",
        "key \"x\": op \"round\" has no parameter \"digit\" (did you mean \"digits\"?)"},
    {"{\"tasks\": {\"x\": {\"op\": \"round\", \"args\": [1], \"kwargs\": {\"x\": 1}}}}",
        "parameter \"x\" is given by position and by name"},
    {"{\"tasks\": {\"x\": {\"op\": \"round\", \"kwargs\": {\"digits\": 1}}}}",
        "op \"round\" takes 1 to 2 arguments, got 1"},
    {"{\"tasks\": {\"x\": {\"op\": \"any\", \"kwargs\": {\"a\": 1, \"a\": 1}}}}",
        "key \"x\": \"a\" appears twice"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"ref\": \"xx\"}]}, \"xy\": {\"value\": "
     "1}}}",
        "key \"y\" refers to \"xx\", which is no key of this graph (did you mean \"xy\"?)"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"ref\": 1}]}}}",
        "key \"y\": \"ref\" is an integer, but must be a text"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"object\": \"zz\"}]}}}",
        "key \"y\": \"zz\" is no object id"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"op\": \"inc\", \"retries\": 1}]}}}",
        "key \"y\": unknown field of a nested task \"retries\""},
    {"{\"dsk\": {\"a\": [\"inc\", \"b\"], \"b\": [\"inc\", \"a\"]}}",
        "the graph has a cycle: a -> b -> a"},
    {"{\"dsk\": {\"a\": [\"inc\", \"a\"], \"b\": 1}, \"targets\": [\"b\"]}",
        "the graph has a cycle: a -> a"},
    {"{\"dsk\": {\"q\": [\"inc\", \"b\"], \"c\": [\"inc\", \"a\"], \"b\": [\"inc\", \"c\"], "
     "\"a\": [\"inc\", \"b\"]}}",
        "the graph has a cycle: c -> a -> b -> c"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"retries\": -1}}}",
        "key \"x\": option \"retries\" must be 0 to 1000"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"retries\": 1.0}}}",
        "option \"retries\" is a number with a fraction, but must be an integer"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"timeout_s\": 0}}}",
        "option \"timeout_s\" is 0, but must be above 0"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"pure\": 1}}}",
        "option \"pure\" is an integer, but must be true or false"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"workers\": [1]}}}",
        "option \"workers\" is an integer, but must be a worker's name"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"resources\": {\"gpu\": -1}}}}",
        "resources: \"gpu\" is -1"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"resources\": {\"a\": 1, \"a\": 1}}}}",
        "resources: \"a\" is given twice"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"persist\": \"\"}}}",
        "option \"persist\" is an empty name"},
    {"{\"dsk\": {\"x\": 1}, \"on_error\": \"halt\"}", "must be \"stop\" or \"continue\""},
    {"{\"dsk\": {\"x\": 1}, \"priority\": 1e3}", "field \"priority\" is a number with a fraction"},
    {"{\"dsk\": {\"x\": 1}, \"deadline_s\": -1}", "field \"deadline_s\" is -1"},
    {"{\"dsk\": {\"x\": 1}, \"name\": 1}", "field \"name\" is an integer"},
    {"{\"dsk\": {\"x\": 1}, \"labels\": {\"a\": 1}}", "field \"labels\" is an integer"},
    {"{\"dsk\": {\"x\": 1}, \"labels\": {\"a\": \"1\", \"a\": \"2\"}}", "\"a\" is given twice"},
    {"{\"params\": {}, \"dsk\": {\"x\": \"${n}\"}}", "key \"x\": ${n} is neither in \"params\""},
    {"{\"params\": {\"copies\": 1}, \"dsk\": {\"x\": \"${copie}-\"}}", "(did you mean \"copies\"?)"},
    {"{\"params\": {\"n\": 1}, \"dsk\": {\"x\": \"a${n\"}}", "a ${ is not closed by }"},
    {"{\"params\": {\"n\": [1]}, \"dsk\": {\"x\": \"a${n}\"}}", "${n} is a list and cannot stand"},
    {"{\"params\": {\"n\": 1, \"n\": 2}, \"dsk\": {\"x\": 1}}", "\"n\" is already a parameter"},
    {"{\"params\": {\"a b\": 1}, \"dsk\": {\"x\": 1}}", "cannot name a parameter"},
    {"{\"tasks\": {\"x\": {\"value\": 1, \"for\": {\"i\": 2}}}}",
        "key \"x\" is defined twice: it does not use its \"for\" variable"},
    {"{\"tasks\": {\"x${i}\": {\"value\": 1, \"for\": {\"i\": -2}}}}",
        "key \"x${i}\": \"for\": \"i\" is an integer, but must be a count"},
    {"{\"tasks\": {\"x${i}\": {\"value\": 1, \"for\": {\"i\": 99999999}}}}", "the limit is"},
    {"{\"tasks\": {\"x${i}\": {\"value\": 1, \"for\": {}}}}", "\"for\" must be an object of 1"},
    {"{\"tasks\": {\"x${i}\": {\"for\": {\"i\": 1}, \"value\": {\"value\": \"${j}\"}}}}",
        "key \"x0\": ${j} is neither"},
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_LEN(refused); i++) {
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        int err = mr_graph_from_json(mr_str(refused[i].json), &fixture_catalogue, &g, &e);
        if (!err) fail_msg("accepted: %s", refused[i].json);
        if (!strstr(e.text, refused[i].says))
            fail_msg("%s\n  says  %s\n  not   %s", refused[i].json, e.text, refused[i].says);
        assert_int_equal(err, e.code);
        assert_null(g);
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (int tasks = 0; tasks < 2; tasks++) {
        struct mr_buf b;
        mr_buf_init(&b, 1 << 20);
        mr_buf_add_text(&b, "{\"dsk\": {\"x\": ");
        for (int i = 0; i < 70; i++)
            mr_buf_add_text(&b, tasks ? "[\"inc\", " : "[");
        mr_buf_add_text(&b, "1");
        for (int i = 0; i < 70; i++)
            mr_buf_add_text(&b, "]");
        mr_buf_add_text(&b, "}}");
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        assert_int_not_equal(mr_graph_from_json(mr_buf_str(&b), &fixture_catalogue, &g, &e), 0);
        assert_non_null(strstr(e.text, "key \"x"));
        assert_non_null(strstr(e.text, "nested deeper than 64"));
        mr_buf_fini(&b);
    }
}

static void a_long_key_is_refused_with_its_length(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    mr_buf_add_text(&b, "{\"dsk\": {\"");
    for (int i = 0; i < MR_KEY_BYTES_MAX + 1; i++)
        mr_buf_add_byte(&b, 'k');
    mr_buf_add_text(&b, "\": 1}}");
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_graph_from_json(mr_buf_str(&b), &fixture_catalogue, &g, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "has 1025 bytes, the limit is 1024"));
    mr_buf_fini(&b);
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
        cmocka_unit_test(no_targets_means_all_that_nothing_needs),
        cmocka_unit_test(culled_keys_are_remembered),
        cmocka_unit_test(definitions_differ_where_values_would),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(a_long_key_is_refused_with_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
