/* The notations of jobs in JSON and the graphs that they become. */
#include "tests/unit/graph/fixture.h"

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

/* Writes a pack as text, for comparison: lists in [], maps in {}, input slots as $n. */
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
    assert_true(mr_graph_is_restricted(g, node_of(g, "a")));
    assert_true(mr_graph_is_restricted(g, node_of(g, "c")));
    assert_false(mr_graph_is_restricted(g, node_of(g, "b")));
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
