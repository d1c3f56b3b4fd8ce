/* The commands retry, forget, graph and retire, each of which makes one call for a job or a
 * worker. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/internal.h"
#include "cli/view/follow.h"
#include "cli/term/table.h"

#include <inttypes.h>
#include <string.h>

#define NODE_BYTES_MAX ((size_t)1 << 24)

struct config {
    struct mr_client_options client;
    uint64_t limit;
};

static const struct mr_option plain_options[] = {MR_CLIENT_OPTIONS};

/* Makes one call for each argument, which stands between `before` and `after` in the path, and
 * prints the answers. */
static int each(const struct mr_config_spec *spec, int argc, char **argv, const char *method,
    const char *before, const char *after, void (*print)(yyjson_val *root, const char *what))
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    mr_config_load(spec, argc, argv, &k, &rest);
    int err = mr_client_open(&k.client, &c, &e);
    struct mr_str body = strcmp(method, "POST") ? (struct mr_str){0} : MR_STR("{}");
    for (size_t i = 0; i < rest.count && !err; i++) {
        yyjson_doc *doc = NULL;
        MR_AUTO(mr_free_ptr) char *what = mr_http_escape(mr_str(rest.items[i]));
        err = mr_client_call(&c, method, body, &doc, &e, "%s%s%s", before, what, after);
        if (!err && c.json) mr_client_print(doc);
        if (!err && !c.json) print(yyjson_doc_get_root(doc), rest.items[i]);
        yyjson_doc_free(doc);
    }
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    mr_config_fini(spec, &k);
    return err ? mr_client_fail(argv[0], &e) : MR_EXIT_OK;
}

/* ---- retry, forget, retire ------------------------------------------------------------------- */

static void print_job(yyjson_val *root, const char *what)
{
    (void)what;
    mr_job_print(root);
}

static void print_forgotten(yyjson_val *root, const char *what)
{
    (void)root;
    (void)printf("%s: forgotten\n", what);
}

static void print_retired(yyjson_val *root, const char *what)
{
    (void)root;
    (void)printf("%s: leaves when its running tasks are done\n", what);
}

const struct mr_config_spec mr_retry_spec = {.program = "millrace retry",
    .summary =
        "Runs the tasks that failed in a failed or cancelled job again; finished results stay.",
    .usage = "[flags] JOB...",
    .examples = "  millrace retry j1kq07ab-7\n",
    .options = plain_options,
    .options_count = MR_ARRAY_LEN(plain_options),
    .rest_min = 1,
    .rest_max = 10000};

int mr_command_retry(int argc, char **argv)
{
    return each(&mr_retry_spec, argc, argv, "POST", "/v1/jobs/", ":retry", print_job);
}

const struct mr_config_spec mr_forget_spec = {.program = "millrace forget",
    .summary = "Forgets jobs that have ended, and their results; objects with a name stay.",
    .usage = "[flags] JOB...",
    .examples = "  millrace forget j1kq07ab-7 j1kq07ab-8\n",
    .options = plain_options,
    .options_count = MR_ARRAY_LEN(plain_options),
    .rest_min = 1,
    .rest_max = 10000};

int mr_command_forget(int argc, char **argv)
{
    return each(&mr_forget_spec, argc, argv, "DELETE", "/v1/jobs/", "", print_forgotten);
}

const struct mr_config_spec mr_retire_spec = {.program = "millrace retire",
    .summary = "Lets workers finish their running tasks and then leave. Needs an admin's token.",
    .usage = "[flags] WORKER...",
    .examples = "  millrace retire worker-0-3\n",
    .options = plain_options,
    .options_count = MR_ARRAY_LEN(plain_options),
    .rest_min = 1,
    .rest_max = 10000};

int mr_command_retire(int argc, char **argv)
{
    return each(&mr_retire_spec, argc, argv, "POST", "/v1/workers/", ":retire", print_retired);
}

/* ---- graph ----------------------------------------------------------------------------------- */

static const struct mr_option graph_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "limit",
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "5000",
        .help = "at most N nodes",
        .at = offsetof(struct config, limit),
        .min = 1,
        .max = 100000},
};
const struct mr_config_spec mr_graph_spec = {.program = "millrace graph",
    .summary = "Lists the nodes of a job's graph: state, operator, key, and the keys they need.",
    .usage = "[flags] JOB",
    .examples = "  millrace graph j1kq07ab-7\n  millrace graph j1kq07ab-7 --limit 20 --json\n",
    .options = graph_options,
    .options_count = MR_ARRAY_LEN(graph_options),
    .rest_min = 1,
    .rest_max = 1};

/* Returns the last part of a state's name: "RUNNING" for "TASK_RUNNING". */
static const char *state_word(const char *state)
{
    return strncmp(state, "TASK_", 5) ? state : state + 5;
}

static const struct mr_column graph_columns[] = {{"STATE", MR_COLUMN_WORD, false},
    {"OPERATOR", MR_COLUMN_KEY, false}, {"KEY", MR_COLUMN_SENTENCE, false}};

/* Writes a node and its inputs, as "svm/mean (target) <- svm/sum, svm/count". */
static void add_node(yyjson_val *nodes, yyjson_val *node, struct mr_buf *out)
{
    size_t i = 0;
    size_t count = 0;
    yyjson_val *input = NULL;
    mr_buf_printf(out, "%s%s", mr_json_get_text(node, "key"),
        mr_json_get_bool(node, "target") ? " (target)" : "");
    yyjson_arr_foreach(yyjson_obj_get(node, "inputs"), i, count, input)
    {
        yyjson_val *of = yyjson_arr_get(nodes, (size_t)yyjson_get_uint(input));
        mr_buf_printf(out, "%s%s", i ? ", " : " <- ", of ? mr_json_get_text(of, "key") : "…");
    }
}

static void print_graph(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *node = NULL;
    yyjson_val *nodes = yyjson_obj_get(root, "nodes");
    struct mr_buf text;
    MR_AUTO(mr_table_free)
    struct mr_table *t = mr_table_new(graph_columns, MR_ARRAY_LEN(graph_columns));
    mr_buf_init(&text, NODE_BYTES_MAX);
    yyjson_arr_foreach(nodes, at, max, node)
    {
        const char *op = mr_json_get_text(node, "op");
        mr_buf_clear(&text);
        add_node(nodes, node, &text);
        mr_table_add(t, "%s", state_word(mr_json_get_text(node, "state")));
        mr_table_add(t, "%s", op[0] ? op : "(value)");
        mr_table_add(t, "%.*s", MR_STR_ARG(mr_buf_str(&text)));
    }
    mr_table_print(t);
    mr_buf_fini(&text);
    uint64_t all = mr_json_get_u64(root, "nodes_count");
    if (all > max) (void)printf("… and %" PRIu64 " more\n", all - (uint64_t)max);
}

static int graph(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(rest->items[0]));
    (void)code;
    return mr_client_show(c, print_graph, e, "/v1/jobs/%s/graph?nodes_max=%" PRIu64, id, k->limit);
}

int mr_command_graph(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_graph_spec, argc, argv, &k, graph);
}
