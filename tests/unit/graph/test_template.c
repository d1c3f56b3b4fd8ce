/* A JSON template makes graphs, and takes parts of them from a cache. Each graph must equal the
 * graph that is made from the whole text with the same parameters. */
#include "tests/unit/graph/fixture.h"

#include "graph/copy.h"
#include "graph/template/template.h"
#include "graph/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>
#include <stdio.h>

#define PARAMS(text) "{\"params\":{" text "}"
#define MARKER "\\u007fmillrace000"

static struct mr_json_template *template_of(const char *defaults, const char *rest)
{
    char text[4096];
    struct mr_json_template *t = NULL;
    struct mr_error e = {0};
    (void)snprintf(text, sizeof text, PARAMS("%s") ",%s}", defaults, rest);
    if (mr_json_template_new(mr_str(text), &t, &e)) fail_msg("%s", e.text);
    return t;
}

static struct mr_graph *instance(struct mr_json_template *t, const char *given, uint64_t *shape)
{
    char text[1024];
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    (void)snprintf(text, sizeof text, PARAMS("%s") "}", given);
    if (mr_json_template_graph(t, mr_str(text), &fixture_catalogue, &g, shape, &e))
        fail_msg("%s", e.text);
    mr_graph_check(g);
    return g;
}

static struct mr_graph *plain(const char *params, const char *rest)
{
    char text[4096];
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    (void)snprintf(text, sizeof text, PARAMS("%s") ",%s}", params, rest);
    if (mr_graph_from_json(mr_str(text), &fixture_catalogue, &g, &e)) fail_msg("%s", e.text);
    return g;
}

static void equal(const void *a, const void *b, size_t n)
{
    assert_true(!a == !b);
    if (a && n) assert_memory_equal(a, b, n);
}

static void is_the_same(const struct mr_graph *a, const struct mr_graph *b)
{
    uint32_t n = a->nodes_count;
    assert_int_equal(n, b->nodes_count);
    assert_int_equal(a->tasks_count, b->tasks_count);
    assert_int_equal(a->culled_count, b->culled_count);
    assert_int_equal(a->options_count, b->options_count);
    for (uint32_t v = 0; v < n; v++) {
        assert_true(mr_str_eq(mr_graph_key(a, v), mr_graph_key(b, v)));
        assert_true(mr_str_eq(mr_graph_op(a, v), mr_graph_op(b, v)));
        assert_true(mr_str_eq(mr_graph_args(a, v), mr_graph_args(b, v)));
        assert_int_equal(mr_graph_is_pure(a, v), mr_graph_is_pure(b, v));
    }
    equal(a->kind, b->kind, n);
    equal(a->input_at, b->input_at, (n + 1) * sizeof *a->input_at);
    equal(a->inputs, b->inputs, a->input_at[n] * sizeof *a->inputs);
    equal(a->dependents, b->dependents, a->input_at[n] * sizeof *a->inputs);
    equal(a->hash, b->hash, n * sizeof *a->hash);
    equal(a->targets, b->targets, a->targets_count * sizeof *a->targets);
    equal(a->slot_of, b->slot_of, n * sizeof *a->slot_of);
    assert_int_equal(a->loops_count, b->loops_count);
    for (uint32_t i = 0; i < a->loops_count; i++)
        equal(a->loops[i].until, b->loops[i].until, (a->loops[i].rounds - 1) * 4);
    assert_true(mr_str_eq(a->job.params, b->job.params));
    assert_true(mr_str_eq(a->job.name, b->job.name));
    assert_true(mr_str_eq(a->job.name_space, b->job.name_space));
}

/* Makes a graph from the template with the parameters `given`. Checks that a full text, of these
 * parameters and `rest`, gives the same graph. */
static void makes(struct mr_json_template *t, const char *given, const char *rest)
{
    uint64_t shape = 0;
    struct mr_graph *a = instance(t, given, &shape), *b = plain(given, rest);
    is_the_same(a, b);
    assert_int_equal(shape, mr_graph_shape(b));
    mr_graph_free(&a);
    mr_graph_free(&b);
}

static void values_of_arguments_are_put_into_what_is_kept(void **state)
{
    (void)state;
    static const char rest[] =
        "\"name\":\"n\",\"tasks\":{\"v\":{\"value\":\"${t}\"},"
        "\"x\":{\"op\":\"inc\",\"args\":[\"${a}\"],\"retries\":3},"
        "\"y\":{\"op\":\"any\",\"args\":[{\"ref\":\"x\"},[1,{\"k\":\"${t}\"},\"${a}\"]],"
        "\"kwargs\":{\"of\":\"${t}\"}},"
        "\"z-${i}\":{\"op\":\"add\",\"args\":[{\"ref\":\"y\"},\"${i}\"],\"for\":{\"i\":3}},"
        "\"culled\":{\"op\":\"inc\",\"args\":[\"${a}\"]}},"
        "\"targets\":[\"v\",{\"each\":\"z-${i}\",\"for\":{\"i\":3}}]";
    struct mr_json_template *t = template_of("\"a\":1,\"t\":\"text\"", rest);
    makes(t, "\"a\":1,\"t\":\"text\"", rest);
    /* The first graph of a template fills no cache, because it may be the only one. */
    assert_int_equal(mr_json_template_cached_bytes(t), 0);
    makes(t, "\"a\":300,\"t\":\"\"", rest);
    assert_true(mr_json_template_cached_bytes(t) > 0);
    makes(t, "\"a\":-7,\"t\":\"a longer text than that of the marker that stands there\"", rest);
    makes(t, "\"a\":2.5,\"t\":\"\\u007fmillrace001\"", rest);
    makes(t, "\"a\":18446744073709551615,\"t\":\"\\u00e9\"", rest);
    mr_json_template_drop(t);
    assert_int_equal(mr_json_template_cached_bytes(t), 0);
    makes(t, "\"a\":4,\"t\":\"x\"", rest);
    mr_json_template_free(&t);
}

static void parameters_of_keys_and_counts_keep_a_graph_each(void **state)
{
    (void)state;
    static const char rest[] = "\"tasks\":{\"p-${i}\":{\"op\":\"inc\",\"args\":[\"${a}\"],"
                               "\"for\":{\"i\":\"${n}\"}},\"${k}\":{\"op\":\"sum\",\"args\":"
                               "{\"each\":{\"ref\":\"p-${i}\"},\"for\":{\"i\":\"${n}\"}}}}";
    struct mr_json_template *t = template_of("\"a\":1,\"n\":2,\"k\":\"s\"", rest);
    char given[64];
    for (int a = 0; a < 40; a++) {
        (void)snprintf(given, sizeof given, "\"a\":%d,\"n\":%d,\"k\":\"%s\"", a * 1000,
            2 + a / 3 % 3, a % 8 < 5 ? "s" : "t");
        makes(t, given, rest);
    }
    assert_true(mr_json_template_cached_bytes(t) > 0);
    mr_json_template_free(&t);
}

static void a_parameter_within_a_text_is_read_each_time(void **state)
{
    (void)state;
    static const char rest[] =
        "\"tasks\":{\"x\":{\"op\":\"any\",\"args\":[\"file-${a}\",\"${b}\",\"" MARKER "\"]}}";
    struct mr_json_template *t = template_of("\"a\":1,\"b\":null", rest);
    makes(t, "\"a\":1,\"b\":true", rest);
    makes(t, "\"a\":2,\"b\":[1,{\"x\":2}]", rest);
    makes(t, "\"a\":2,\"b\":{\"ref\":\"x\"}", rest);
    makes(t, "\"a\":2,\"b\":\"x\"", rest);
    makes(t, "\"a\":2,\"b\":false", rest);
    makes(t, "\"a\":3,\"b\":null", rest);
    mr_json_template_free(&t);
}

static void what_is_more_than_a_value_is_never_taken_for_one(void **state)
{
    (void)state;
    static const char rest[] =
        "\"namespace\":\"s\",\"tasks\":{\"x\":{\"op\":\"inc\",\"args\":[{\"name\":\"${a}\"}]},"
        "\"y\":{\"op\":\"inc\",\"args\":[{\"ref\":\"${b}\"}]},"
        "\"z\":{\"op\":\"inc\",\"args\":[\"${c}\"],\"persist\":\"${d}\"}}";
    struct mr_json_template *t = template_of("\"a\":\"n\",\"b\":\"x\",\"c\":1,\"d\":\"p\"", rest);
    for (int i = 0; i < 3; i++) {
        makes(t, "\"a\":\"n\",\"b\":\"x\",\"c\":1,\"d\":\"p\"", rest);
        makes(t, "\"a\":\"n\",\"b\":\"x\",\"c\":2,\"d\":\"p\"", rest);
        makes(t, "\"a\":\"m\",\"b\":\"elsewhere\",\"c\":2,\"d\":\"q\"", rest);
        makes(t, "\"a\":\"m\",\"b\":\"elsewhere\",\"c\":3,\"d\":\"q\"", rest);
    }
    mr_json_template_free(&t);
}

static void loops_are_kept_with_their_rounds(void **state)
{
    (void)state;
    static const char rest[] =
        "\"tasks\":{},\"repeat\":{\"fit\":{\"max\":\"${m}\",\"carry\":{\"s\":{\"value\":\"${a}\"}},"
        "\"tasks\":{\"n\":{\"op\":\"add\",\"args\":[{\"ref\":\"s\"},\"${a}\"]}},"
        "\"next\":{\"s\":{\"ref\":\"n\"}},"
        "\"until\":{\"op\":\"round\",\"args\":[{\"ref\":\"n\"}]}}}";
    struct mr_json_template *t = template_of("\"a\":1,\"m\":5", rest);
    for (int i = 0; i < 3; i++) {
        makes(t, "\"a\":1,\"m\":5", rest);
        makes(t, "\"a\":2,\"m\":5", rest);
        makes(t, "\"a\":3,\"m\":9", rest);
    }
    assert_true(mr_json_template_cached_bytes(t) > 0);
    mr_json_template_free(&t);
}

static void what_is_wrong_with_a_parameter_is_said_as_before(void **state)
{
    (void)state;
    static const char rest[] = "\"tasks\":{\"x\":{\"op\":\"inc\",\"args\":[\"${a}\"]}}";
    struct mr_json_template *t = template_of("\"a\":1", rest);
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    for (int i = 0; i < 3; i++)
        makes(t, "\"a\":1", rest);
    assert_int_equal(mr_json_template_graph(
                         t, MR_STR("{\"params\":{\"b\":1}}"), &fixture_catalogue, &g, NULL, &e),
        MR_EINVAL);
    assert_string_equal(e.text, "\"b\" is no parameter of the template");
    assert_int_equal(mr_json_template_graph(
                         t, MR_STR("{\"params\":{\"a\":\"1\"}}"), &fixture_catalogue, &g, NULL, &e),
        MR_EINVAL);
    assert_string_equal(e.text, "parameter \"a\" is a text, and its default is an integer");
    mr_json_template_free(&t);
}

static void values_that_are_too_much_for_a_task_are_refused_as_before(void **state)
{
    (void)state;
    enum { TIMES = 5000 };
    struct mr_json_template *t = NULL;
    struct mr_error e = {0};
    struct mr_graph *g = NULL;
    struct mr_buf b;
    char given[512];
    mr_buf_init(&b, (size_t)1 << 20);
    mr_buf_add_text(&b, PARAMS("\"a\":\"\"") ",\"tasks\":{\"x\":{\"op\":\"any\",\"args\":[0");
    for (int i = 0; i < TIMES; i++)
        mr_buf_add_text(&b, ",\"${a}\"");
    mr_buf_add_text(&b, "]}}}");
    if (mr_json_template_new(mr_buf_str(&b), &t, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < 3; i++) {
        uint64_t shape = 0;
        g = instance(t, "\"a\":\"short\"", &shape);
        mr_graph_free(&g);
    }
    assert_true(mr_json_template_cached_bytes(t) > 0);
    (void)snprintf(given, sizeof given, PARAMS("\"a\":\"%0250d\"") "}", 0);
    assert_int_equal(
        mr_json_template_graph(t, mr_str(given), &fixture_catalogue, &g, NULL, &e), MR_ELIMIT);
    mr_json_template_free(&t);
    mr_buf_fini(&b);
}

static void equal_shapes_are_told_from_equal_sizes(void **state)
{
    (void)state;
    static const char rest[] = "\"tasks\":{\"a\":{\"value\":1},\"b\":{\"value\":2},"
                               "\"x\":{\"op\":\"inc\",\"args\":[{\"ref\":\"${k}\"}]}},"
                               "\"targets\":[\"a\",\"b\",\"x\"]";
    struct mr_json_template *t = template_of("\"k\":\"a\"", rest);
    uint64_t shape[3];
    const char *given[3] = {"\"k\":\"a\"", "\"k\":\"b\"", "\"k\":\"a\""};
    for (int i = 0; i < 3; i++) {
        struct mr_graph *g = instance(t, given[i], &shape[i]);
        mr_graph_free(&g);
    }
    assert_true(shape[0] != shape[1]);
    assert_true(shape[0] == shape[2]);
    mr_json_template_free(&t);
}

/* The limit of tasks applies to the graph with the parameters that the instance gives. The instance
 * is refused before any node is made. */
static void an_instance_that_asks_for_too_much_is_refused(void **state)
{
    (void)state;
    struct mr_json_template *t = template_of("\"n\": 2, \"m\": 2",
        "\"tasks\": {\"a-${i}\": {\"value\": 1, \"for\": {\"i\": \"${n}\"}}, \"b-${i}\": {\"value\": "
        "1, \"for\": {\"i\": \"${m}\"}}}");
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    for (int i = 0; i < 3; i++) { /* with several instances the template is cached */
        g = instance(t, "\"n\": 3", NULL);
        mr_graph_free(&g);
    }
    assert_int_equal(
        mr_json_template_graph(t, MR_STR("{\"params\": {\"n\": 15000000, \"m\": 15000000}}"),
            &fixture_catalogue, &g, NULL, &e),
        MR_ELIMIT);
    if (!strstr(e.text, "key \"b-${i}\": \"for\" and \"each\" ask for 30000000 tasks"))
        fail_msg("it says %s", e.text);
    mr_json_template_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_arguments_are_put_into_what_is_kept),
        cmocka_unit_test(parameters_of_keys_and_counts_keep_a_graph_each),
        cmocka_unit_test(a_parameter_within_a_text_is_read_each_time),
        cmocka_unit_test(what_is_more_than_a_value_is_never_taken_for_one),
        cmocka_unit_test(loops_are_kept_with_their_rounds),
        cmocka_unit_test(what_is_wrong_with_a_parameter_is_said_as_before),
        cmocka_unit_test(values_that_are_too_much_for_a_task_are_refused_as_before),
        cmocka_unit_test(equal_shapes_are_told_from_equal_sizes),
        cmocka_unit_test(an_instance_that_asks_for_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
