/* `repeat`: the nodes that a loop becomes in a graph, and loops that are refused. */
#include "tests/unit/graph/fixture.h"

#include "graph/bytes/bytes.h"
#include "graph/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#define BODY "\"tasks\":{\"n\":{\"op\":\"inc\",\"args\":[{\"ref\":\"s\"}]}}"
#define NEXT "\"next\":{\"s\":{\"ref\":\"n\"}}"
#define CARRY "\"carry\":{\"s\":{\"value\":0}}"
#define ENDS "\"until\":{\"op\":\"round\",\"args\":[{\"ref\":\"n\"}]}"
#define LOOP(fields) "{\"repeat\":{\"fit\":{" fields "}}}"

static struct mr_graph *graph_of(const char *json)
{
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    if (mr_graph_from_json(mr_str(json), &fixture_catalogue, &g, &e)) fail_msg("%s", e.text);
    mr_graph_check(g);
    return g;
}

static void has_inputs(struct mr_graph *g, const char *key, const char *expected)
{
    char text[512] = "";
    uint32_t n, node = mr_graph_find(g, mr_str(key));
    assert_int_not_equal(node, MR_NODE_NONE);
    const uint32_t *in = mr_graph_inputs(g, node, &n);
    for (uint32_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s%.*s", i ? " " : "",
            MR_STR_ARG(mr_graph_key(g, in[i])));
    }
    assert_string_equal(text, expected);
}

static void each_round_takes_what_the_one_before_left(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(LOOP("\"max\":3," CARRY "," BODY "," NEXT "," ENDS));
    has_inputs(g, "fit[0].n", "fit[0].s");
    has_inputs(g, "fit[1].n", "fit[0].n fit[0].until");
    has_inputs(g, "fit[2].n", "fit[1].n fit[1].until");
    has_inputs(g, "fit[1].until", "fit[1].n");
    has_inputs(g, "fit.s", "fit[0].n fit[1].n fit[2].n fit[0].until fit[1].until");
    has_inputs(g, "fit.count", "fit[0].until fit[1].until");
    assert_int_equal(g->loops_count, 1);
    assert_int_equal(g->loops[0].exits_count, 2);
    assert_int_equal(mr_graph_loop_tail(g, 0, 0), 3);
    mr_graph_free(&g);
}

static void a_loop_without_a_condition_is_so_many_rounds(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(LOOP("\"max\":3," CARRY "," BODY "," NEXT));
    has_inputs(g, "fit[2].n", "fit[1].n");
    has_inputs(g, "fit.s", "fit[2].n");
    assert_int_equal(g->kind[mr_graph_find(g, MR_STR("fit.count"))], MR_NODE_LITERAL);
    assert_int_equal(g->loops_count, 0);
    mr_graph_free(&g);
}

static void what_no_task_of_the_body_makes_is_carried_by_a_task(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"repeat\":{\"fib\":{\"max\":3,\"carry\":{\"a\":{\"value\":0},\"b\":{\"value\":1}},"
        "\"tasks\":{\"c\":{\"op\":\"add\",\"args\":[{\"ref\":\"a\"},{\"ref\":\"b\"}]}},"
        "\"next\":{\"a\":{\"ref\":\"b\"},\"b\":{\"ref\":\"c\"}}}}}");
    has_inputs(g, "fib[1].c", "fib[0].a#0 fib[0].c");
    has_inputs(g, "fib[2].a#0", "fib[1].c");
    mr_graph_free(&g);
}

static void keys_of_the_body_come_before_carried_and_outer_ones(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(
        "{\"tasks\":{\"n\":{\"value\":1},\"s\":{\"value\":2},\"x\":{\"value\":3}},"
        "\"repeat\":{\"fit\":{\"max\":2,\"carry\":{\"s\":{\"ref\":\"s\"}},\"tasks\":{"
        "\"n\":{\"op\":\"add\",\"args\":[{\"ref\":\"s\"},{\"ref\":\"x\"}]},"
        "\"m\":{\"op\":\"inc\",\"args\":[{\"ref\":\"n\"}]}},\"next\":{\"s\":{\"ref\":\"m\"}}}},"
        "\"targets\":[\"fit.s\",\"n\"]}");
    has_inputs(g, "fit[0].s", "s");
    has_inputs(g, "fit[0].n", "fit[0].s x");
    has_inputs(g, "fit[1].n", "fit[0].m x");
    has_inputs(g, "fit[1].m", "fit[1].n");
    mr_graph_free(&g);
}

static void a_graph_with_loops_is_read_back_from_its_bytes(void **state)
{
    (void)state;
    struct mr_graph *g = graph_of(LOOP("\"max\":5," CARRY "," BODY "," NEXT "," ENDS));
    struct mr_graph *again = NULL;
    struct mr_error e = {0};
    struct mr_buf bytes;
    mr_buf_init(&bytes, 1 << 20);
    assert_int_equal(mr_graph_to_bytes(g, &bytes, &e), MR_OK);
    if (mr_graph_from_bytes(mr_buf_str(&bytes), &again, &e)) fail_msg("%s", e.text);
    assert_int_equal(again->loops_count, 1);
    assert_int_equal(again->slots_count, g->slots_count);
    assert_memory_equal(again->slot_of, g->slot_of, g->nodes_count * sizeof *g->slot_of);
    assert_memory_equal(again->loops[0].until, g->loops[0].until, 4 * sizeof(uint32_t));
    mr_buf_fini(&bytes);
    mr_graph_free(&g);
    mr_graph_free(&again);
}

static const struct {
    const char *json;
    const char *says;
} refused[] = {
    {"{\"repeat\":[]}", "field \"repeat\" is a list, but must be an object of loops"},
    {"{\"repeat\":{\"fit\":1}}", "repeat \"fit\": is an integer, but must be an object"},
    {"{\"repeat\":{\"a b\":{\"max\":1," CARRY "," BODY "," NEXT "}}}", "is no name of a loop"},
    {LOOP(CARRY "," BODY "," NEXT), "repeat \"fit\": has no \"max\""},
    {LOOP("\"max\":0," CARRY "," BODY "," NEXT), "\"max\" is 0, but must be 1 to 32768 rounds"},
    {LOOP("\"max\":32769," CARRY "," BODY "," NEXT), "\"max\" is 32769"},
    {LOOP("\"max\":2," BODY "," NEXT), "has no \"carry\""},
    {LOOP("\"max\":2,\"carry\":{}," BODY "," NEXT), "\"carry\" has 0 names"},
    {LOOP("\"max\":2," CARRY "," NEXT), "has no \"tasks\""},
    {LOOP("\"max\":2," CARRY "," BODY), "has no \"next\""},
    {LOOP("\"max\":2," CARRY "," BODY ",\"next\":{}"),
        "repeat \"fit\": \"next\" does not say what becomes of \"s\""},
    {LOOP("\"max\":2," CARRY "," BODY ",\"next\":{\"t\":{\"ref\":\"n\"}}"), "\"t\" is not carried"},
    {LOOP("\"max\":2,\"carry\":{\"n\":{\"value\":0}}," BODY ",\"next\":{\"n\":{\"ref\":\"n\"}}"),
        "\"n\" is both carried and a key of the body"},
    {LOOP("\"max\":2,\"carry\":{\"count\":1}," BODY "," NEXT), "cannot be carried under this name"},
    {LOOP("\"max\":2," CARRY "," BODY "," NEXT ",\"untill\":1"), "did you mean \"until\"?"},
    {LOOP("\"max\":2," CARRY "," BODY "," NEXT ",\"repeat\":{}"),
        "a loop inside of a loop is not possible"},
    {LOOP("\"max\":2," CARRY
          ",\"tasks\":{\"n\":{\"op\":\"inc\",\"args\":[{\"ref\":\"zz\"}]}}," NEXT),
        "key \"fit[0].n\" refers to \"zz\", which is no key of this graph"},
    {LOOP("\"max\":2," CARRY ",\"tasks\":{\"n\":{\"op\":\"inc\",\"args\":[{\"ref\":\"s\"}],"
          "\"persist\":\"p\"}}," NEXT),
        "each round would persist under the same name"},
    {LOOP("\"max\":32768," CARRY ",\"tasks\":{\"n\":{\"op\":\"inc\",\"args\":[{\"ref\":\"s\"}]},"
          "\"k${i}\":{\"op\":\"inc\",\"args\":[{\"ref\":\"s\"}],\"for\":{\"i\":40}}}," NEXT),
        "32768 rounds of 41 tasks are more than the 1048576 of one loop"},
    {"{\"tasks\":{\"y\":{\"op\":\"inc\",\"args\":[{\"ref\":\"fit[1].n\"}]}},\"repeat\":{\"fit\":{"
     "\"max\":2," CARRY "," BODY "," NEXT "}}}",
        "is used outside of it, and belongs to a round"},
    {"{\"tasks\":{\"fit.s\":{\"value\":1}},\"repeat\":{\"fit\":{\"max\":2," CARRY "," BODY "," NEXT
     "}}}",
        "key \"fit.s\" is defined twice"},
    {"{\"targets\":[\"fit[1].n\"],\"repeat\":{\"fit\":{\"max\":2," CARRY "," BODY "," NEXT "}}}",
        "a target is \"fit[1].n\", which is inside of loop \"fit\""},
    {LOOP("\"max\":2,\"carry\":{\"s\":{\"ref\":\"fit.s\"}}," BODY "," NEXT),
        "the graph has a cycle"},
};

static void what_is_no_loop_is_refused_in_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_LEN(refused); i++) {
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        int err = mr_graph_from_json(mr_str(refused[i].json), &fixture_catalogue, &g, &e);
        if (!err) fail_msg("accepted: %s", refused[i].json);
        if (!strstr(e.text, refused[i].says))
            fail_msg("%s\nsays:  %s\nwants: %s", refused[i].json, e.text, refused[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_round_takes_what_the_one_before_left),
        cmocka_unit_test(a_loop_without_a_condition_is_so_many_rounds),
        cmocka_unit_test(what_no_task_of_the_body_makes_is_carried_by_a_task),
        cmocka_unit_test(keys_of_the_body_come_before_carried_and_outer_ones),
        cmocka_unit_test(a_graph_with_loops_is_read_back_from_its_bytes),
        cmocka_unit_test(what_is_no_loop_is_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
