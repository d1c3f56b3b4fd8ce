/* trainer/link/role_job: the jobs that a session submits for its graph, its roles and its feed
 * (the job that fills its queue), made from the document of the session. */
#include "base/alloc.h"
#include "base/pack.h"
#include "graph/explain.h"
#include "graph/json/json.h"
#include "services/trainer/link/role_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

static const char document[] =
    "{\"name\":\"mnist\",\"params\":{\"copies\":3,\"scale\":1.0},"
    "\"graph\":{\"params\":{\"copies\":20,\"seed\":7},\"on_error\":\"stop\",\"namespace\":\"mine\","
    "\"tasks\":{\"part-${i}\":{\"op\":\"load\",\"args\":[\"${scale}\"],\"for\":{\"i\":\"${copies}\"}},"
    "\"train/x\":{\"op\":\"stack\",\"args\":{\"each\":{\"ref\":\"part-${i}\"},\"for\":{\"i\":\"${copies}\"}}},"
    "\"train/y\":{\"value\":[1,2]},\"unused\":{\"value\":0},\"held/x\":{\"value\":[3]}},"
    "\"targets\":[\"unused\"]},"
    "\"data\":{\"train\":{\"x\":\"train/x\",\"y\":\"train/y\"},"
    "\"validation\":{\"x\":\"held/x\",\"y\":{\"name\":\"held/labels\"}},"
    "\"test\":{\"x\":\"held/x\",\"y\":{\"object\":\"0123456789abcdef0123456789abcdef\"}},\"batch\":64},"
    "\"roles\":{\"ps\":1,\"worker\":2,\"scorer\":1}}";

static const struct mr_str two_workers[] = {MR_STR_INIT("w-0"), MR_STR_INIT("w-1")};

static struct mr_role_job_spec spec_of(const char *text)
{
    return (struct mr_role_job_spec){.document = mr_str(text),
        .session = MR_STR("t1-7"),
        .trainer = MR_STR("unix:/run/trainer.sock"),
        .workers = two_workers,
        .workers_count = 2};
}

static bool find_any(const void *ctx, struct mr_str op, struct mr_graph_op_info *out)
{
    (void)ctx;
    (void)op;
    *out = (struct mr_graph_op_info){.any_positional = true, .any_named = true};
    return true;
}

static const struct mr_graph_catalogue any_op = {.find = find_any};

struct fixture {
    struct mr_buf body;
    struct mr_graph *graph;
};

static int setup(void **state)
{
    struct fixture *f = mr_alloc(sizeof *f);
    mr_buf_init(&f->body, MR_ROLE_JOB_BYTES_MAX);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mr_graph_free(&f->graph);
    mr_buf_fini(&f->body);
    mr_release(f);
    return 0;
}

/* Makes a job with `make` and parses it as the scheduler does. Returns the graph. */
static struct mr_graph *build(struct fixture *f,
    int (*make)(const struct mr_role_job_spec *, struct mr_buf *, struct mr_error *),
    const char *text)
{
    struct mr_error e = {0};
    const struct mr_role_job_spec spec = spec_of(text);
    if (make(&spec, &f->body, &e)) fail_msg("%s", e.text);
    if (mr_graph_from_json(mr_buf_str(&f->body), &any_op, &f->graph, &e))
        fail_msg("%s\n%.*s", e.text, MR_STR_ARG(mr_buf_str(&f->body)));
    return f->graph;
}

static uint32_t node_of(struct mr_graph *g, const char *key)
{
    uint32_t v = mr_graph_find(g, mr_str(key));
    if (v == MR_NODE_NONE) fail_msg("no key %s", key);
    return v;
}

static bool is_input(struct mr_graph *g, const char *key, const char *input)
{
    uint32_t count = 0;
    uint32_t wanted = mr_graph_find(g, mr_str(input));
    const uint32_t *inputs = mr_graph_inputs(g, node_of(g, key), &count);
    for (uint32_t i = 0; i < count; i++)
        if (inputs[i] == wanted) return true;
    return false;
}

static void text_is(struct mr_str s, const char *wanted)
{
    if (!mr_str_eq(s, mr_str(wanted))) fail_msg("\"%.*s\" is not \"%s\"", MR_STR_ARG(s), wanted);
}

static void the_targets_of_the_graph_are_the_keys_that_data_names(void **state)
{
    struct mr_graph *g = build(*state, mr_role_job_graph, document);
    /* "data" names held/x twice, which gives one target. */
    assert_int_equal(g->targets_count, 3);
    text_is(mr_graph_key(g, g->targets[0]), "train/x");
    text_is(mr_graph_key(g, g->targets[1]), "train/y");
    text_is(mr_graph_key(g, g->targets[2]), "held/x");
    assert_int_equal(mr_graph_find(g, MR_STR("unused")), MR_NODE_NONE);
}

static void the_sessions_parameters_go_over_the_graphs_own(void **state)
{
    struct mr_graph *g = build(*state, mr_role_job_graph, document);
    assert_int_not_equal(mr_graph_find(g, MR_STR("part-2")), MR_NODE_NONE);
    assert_int_equal(mr_graph_find(g, MR_STR("part-3")), MR_NODE_NONE);
    struct mr_pack_reader r = mr_pack_read(mr_graph_args(g, node_of(g, "part-0")));
    struct mr_pack_item item;
    assert_int_equal(mr_pack_next(&r, &item), 0);
    assert_int_equal(mr_pack_next(&r, &item), 0);
    assert_int_equal(item.type, MR_PACK_FLOAT); /* 1.0 does not become the integer 1 */
}

static void both_jobs_share_a_namespace_of_the_session(void **state)
{
    struct fixture *f = *state;
    text_is(build(f, mr_role_job_graph, document)->job.name_space, "training-t1-7");
    mr_graph_free(&f->graph);
    mr_buf_clear(&f->body);
    struct mr_graph *g = build(f, mr_role_job_roles, document);
    text_is(g->job.name_space, "training-t1-7");
    text_is(g->job.name, "mnist roles");
    assert_int_equal(g->job.labels_count, 1);
}

static void a_role_is_a_long_running_task_that_is_tried_again(void **state)
{
    struct mr_graph *g = build(*state, mr_role_job_roles, document);
    text_is(mr_graph_op(g, node_of(g, "ps/0")), "train.ps");
    text_is(mr_graph_op(g, node_of(g, "worker/1")), "train.worker");
    text_is(mr_graph_op(g, node_of(g, "scorer/0")), "train.scorer");
    const struct mr_task_options *o = mr_graph_options(g, node_of(g, "worker/1"));
    assert_true(o->long_running);
    assert_false(o->pure);
    assert_true(o->allow_other_workers);
    assert_int_equal(o->retries, 1000);
    assert_int_equal(o->priority, 90);
    assert_int_equal(g->targets_count, 4);
}

static void roles_go_round_the_workers(void **state)
{
    static const char *const wanted[][2] = {
        {"ps/0", "w-0"}, {"worker/0", "w-1"}, {"worker/1", "w-0"}, {"scorer/0", "w-1"}};
    struct mr_graph *g = build(*state, mr_role_job_roles, document);
    for (size_t i = 0; i < MR_ARRAY_LEN(wanted); i++) {
        const struct mr_task_options *o = mr_graph_options(g, node_of(g, wanted[i][0]));
        assert_int_equal(o->workers_count, 1);
        text_is(o->workers[0], wanted[i][1]);
    }
}

static void workers_get_what_trains_and_the_scorer_what_scores(void **state)
{
    struct mr_graph *g = build(*state, mr_role_job_roles, document);
    assert_true(is_input(g, "worker/0", "train/x"));
    assert_false(is_input(g, "worker/0", "held/x"));
    assert_true(is_input(g, "scorer/0", "held/x"));
    assert_false(is_input(g, "scorer/0", "train/x"));
    uint32_t count = 0;
    (void)mr_graph_inputs(g, node_of(g, "ps/0"), &count);
    assert_int_equal(count, 0);
    (void)mr_graph_inputs(g, node_of(g, "scorer/0"), &count);
    assert_int_equal(count, 3); /* held/x, an object by name, an object by id */
}

static void without_a_scorer_the_first_worker_gets_everything(void **state)
{
    static const char text[] =
        "{\"data\":{\"train\":{\"x\":{\"name\":\"a\"},\"y\":{\"name\":\"b\"}},"
        "\"validation\":{\"x\":{\"name\":\"c\"},\"y\":{\"name\":\"d\"}}},"
        "\"roles\":{\"ps\":0,\"worker\":{\"count\":2}}}";
    struct mr_graph *g = build(*state, mr_role_job_roles, text);
    uint32_t count = 0;
    (void)mr_graph_inputs(g, node_of(g, "worker/0"), &count);
    assert_int_equal(count, 4);
    (void)mr_graph_inputs(g, node_of(g, "worker/1"), &count);
    assert_int_equal(count, 2);
}

static void a_role_with_a_command_is_run_by_train_exec(void **state)
{
    static const char text[] = "{\"roles\":{\"worker\":{\"count\":2,\"exec\":[\"python3\"]}}}";
    struct mr_graph *g = build(*state, mr_role_job_roles, text);
    text_is(mr_graph_op(g, node_of(g, "worker/1")), "train.exec");
}

static void a_set_without_labels_is_named(void **state)
{
    struct fixture *f = *state;
    struct mr_error e = {0};
    const struct mr_role_job_spec spec =
        spec_of("{\"data\":{\"train\":{\"x\":{\"name\":\"a\"}}},\"roles\":{\"worker\":1}}");
    assert_int_equal(mr_role_job_roles(&spec, &f->body, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "data.train.y"));
}

static void a_document_without_roles_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mr_error e = {0};
    const struct mr_role_job_spec spec = spec_of("{\"roles\":{}}");
    assert_int_equal(mr_role_job_roles(&spec, &f->body, &e), MR_EINVAL);
}

static const char queued[] =
    "{\"graph\":{\"tasks\":{\"held\":{\"value\":1},\"rows\":{\"value\":2},"
    "\"feed\":{\"op\":\"queue.put\",\"args\":[\"q\",{\"ref\":\"rows\"}]}}},"
    "\"data\":{\"queue\":\"q\",\"validation\":{\"x\":\"held\",\"y\":\"held\"}},\"roles\":{\"worker\":1}}";

static void what_feeds_a_queue_does_not_run_before_the_session(void **state)
{
    struct fixture *f = *state;
    struct mr_graph *g = build(f, mr_role_job_graph, queued);
    assert_int_equal(mr_graph_find(g, MR_STR("feed")), MR_NODE_NONE);
    (void)node_of(g, "held");
    mr_graph_free(&f->graph);
    mr_buf_clear(&f->body);
    g = build(f, mr_role_job_feed, queued);
    (void)node_of(g, "feed");
    text_is(g->job.name_space, "training-t1-7");
}

static void a_graph_that_only_feeds_a_queue_prepares_nothing(void **state)
{
    static const char text[] =
        "{\"graph\":{\"tasks\":{\"feed\":{\"op\":\"queue.put\",\"args\":[\"q\",1]}}},"
        "\"data\":{\"queue\":\"q\"},\"roles\":{\"worker\":1}}";
    struct mr_graph *g = build(*state, mr_role_job_graph, text);
    assert_int_equal(mr_graph_find(g, MR_STR("feed")), MR_NODE_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_targets_of_the_graph_are_the_keys_that_data_names),
        TEST(the_sessions_parameters_go_over_the_graphs_own),
        TEST(both_jobs_share_a_namespace_of_the_session),
        TEST(a_role_is_a_long_running_task_that_is_tried_again),
        TEST(roles_go_round_the_workers),
        TEST(workers_get_what_trains_and_the_scorer_what_scores),
        TEST(without_a_scorer_the_first_worker_gets_everything),
        TEST(a_role_with_a_command_is_run_by_train_exec),
        TEST(what_feeds_a_queue_does_not_run_before_the_session),
        TEST(a_graph_that_only_feeds_a_queue_prepares_nothing),
        TEST(a_set_without_labels_is_named),
        TEST(a_document_without_roles_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
