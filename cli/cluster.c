/* `millrace ops` and `millrace workers`: list the operators and the workers of a cluster. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/internal.h"
#include "cli/term/table.h"
#include "cli/term/text.h"

#include <inttypes.h>

struct config {
    struct mr_client_options client;
};

static const struct mr_option plain_options[] = {MR_CLIENT_OPTIONS};

static const struct mr_column op_columns[] = {
    {NULL, MR_COLUMN_WORD, false}, {NULL, MR_COLUMN_SENTENCE, false}};
static const struct mr_column param_columns[] = {{NULL, MR_COLUMN_WORD, false},
    {NULL, MR_COLUMN_WORD, false}, {NULL, MR_COLUMN_SENTENCE, false}};

static void print_ops(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *op = NULL;
    MR_AUTO(mr_table_free) struct mr_table *t = mr_table_new(op_columns, MR_ARRAY_LEN(op_columns));
    yyjson_arr_foreach(yyjson_obj_get(root, "ops"), at, max, op)
    {
        mr_table_add(t, "%s", mr_json_get_text(op, "name"));
        mr_table_add(t, "%s", mr_json_get_text(op, "summary"));
    }
    mr_table_print(t);
}

static void print_op(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *p = NULL;
    yyjson_val *op = yyjson_arr_get_first(yyjson_obj_get(root, "ops"));
    MR_AUTO(mr_table_free)
    struct mr_table *t = mr_table_new(param_columns, MR_ARRAY_LEN(param_columns));
    print_ops(root);
    yyjson_arr_foreach(yyjson_obj_get(op, "parameters"), at, max, p)
    {
        const char *fallback = mr_json_get_text(p, "default_json");
        mr_table_add(t, "  %s", mr_json_get_text(p, "name"));
        mr_table_add(t, "%s", mr_json_get_text(p, "type"));
        mr_table_add(t, "%s%s%s%s", mr_json_get_text(p, "doc"), fallback[0] ? " (default " : "",
            fallback, fallback[0] ? ")" : "");
    }
    mr_table_print(t);
    mr_text_print(4, "  returns %s; runtime %s%s%s\n", mr_json_get_text(op, "returns"),
        mr_json_get_text(op, "runtime"),
        mr_json_get_bool(op, "deterministic") ? "; deterministic" : "",
        mr_json_get_bool(op, "variadic") ? "; the last parameter repeats" : "");
}

const struct mr_config_spec mr_ops_spec = {.program = "millrace ops",
    .summary = "Lists the operators, or describes one.",
    .usage = "[flags] [NAME]",
    .examples = "  millrace ops\n  millrace ops array.mean\n",
    .options = plain_options,
    .options_count = MR_ARRAY_LEN(plain_options),
    .rest_max = 1};

static int ops(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    (void)config;
    (void)code;
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(rest->count ? rest->items[0] : ""));
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/ops?name=%s", name);
    return mr_client_show_list(c, rest->count ? print_op : print_ops, path, "ops", e);
}

int mr_command_ops(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_ops_spec, argc, argv, &k, ops);
}

static const struct mr_column worker_columns[] = {{"WORKER", MR_COLUMN_KEY, false},
    {"NODE", MR_COLUMN_KEY, false}, {"STATE", MR_COLUMN_WORD, false},
    {"SLOTS", MR_COLUMN_NUMBER, true}, {"RUNNING", MR_COLUMN_NUMBER, false},
    {"QUEUED", MR_COLUMN_NUMBER, false}, {"HELD", MR_COLUMN_NUMBER, false},
    {"DONE", MR_COLUMN_NUMBER, false}, {"PID", MR_COLUMN_NUMBER, true}};

void mr_workers_write(yyjson_val *root, unsigned columns, struct mr_buf *out)
{
    static const char *const texts[] = {"name", "node", "state"};
    static const char *const numbers[] = {"slots", "running", "queued"};
    size_t at = 0;
    size_t max = 0;
    yyjson_val *w = NULL;
    MR_AUTO(mr_table_free)
    struct mr_table *t = mr_table_new(worker_columns, MR_ARRAY_LEN(worker_columns));
    yyjson_arr_foreach(yyjson_obj_get(root, "workers"), at, max, w)
    {
        char held[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(w, "held_bytes"), held);
        for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++)
            mr_table_add(t, "%s", mr_json_get_text(w, texts[i]));
        for (size_t i = 0; i < MR_ARRAY_LEN(numbers); i++)
            mr_table_add(t, "%" PRIu64, mr_json_get_u64(w, numbers[i]));
        mr_table_add(t, "%s", held);
        mr_table_add(t, "%" PRIu64, mr_json_get_u64(w, "tasks_done"));
        mr_table_add(t, "%" PRIu64, mr_json_get_u64(w, "pid"));
    }
    mr_table_write(t, columns, out);
}

static void print_workers(yyjson_val *root)
{
    struct mr_buf out;
    mr_buf_init(&out, MR_CLUSTER_BYTES_MAX);
    mr_workers_write(root, mr_text_columns(stdout), &out);
    (void)fwrite(out.p, 1, out.n, stdout);
    mr_buf_fini(&out);
}

const struct mr_config_spec mr_workers_spec = {.program = "millrace workers",
    .summary = "Lists the workers.",
    .examples = "  millrace workers\n",
    .options = plain_options,
    .options_count = MR_ARRAY_LEN(plain_options)};

static int workers(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    (void)config;
    (void)rest;
    (void)code;
    return mr_client_show_list(c, print_workers, "/v1/workers", "workers", e);
}

int mr_command_workers(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_workers_spec, argc, argv, &k, workers);
}
