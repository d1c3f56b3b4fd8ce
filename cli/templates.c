/* `millrace template`: keeps job files under a name, and makes jobs of them. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/internal.h"
#include "cli/view/follow.h"
#include "cli/client/jobfile.h"
#include "cli/term/table.h"
#include "cli/term/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE_BYTES_MAX ((size_t)16 << 20)

struct config {
    struct mr_client_options client;
    struct mr_texts set;
    const char *name;
    bool replace;
    bool wait;
};

static const struct mr_option options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "name",
        .type = MR_OPTION_TEXT,
        .value = "NAME",
        .help = "install: the template's name (default: the file's \"name\")",
        .at = offsetof(struct config, name)},
    {.name = "replace",
        .type = MR_OPTION_BOOL,
        .help = "install: replace a template of this name",
        .at = offsetof(struct config, replace)},
    {.name = "set",
        .type = MR_OPTION_TEXTS,
        .value = "NAME=VALUE",
        .help = "instantiate: set a parameter of the template",
        .at = offsetof(struct config, set)},
    {.name = "wait",
        .type = MR_OPTION_BOOL,
        .help = "instantiate: wait for the end of the job",
        .at = offsetof(struct config, wait)},
};
const struct mr_config_spec mr_template_spec = {.program = "millrace template",
    .summary =
        "Lists templates, shows one, installs a job file (-: stdin) as a template, makes a job\n"
        "of one and prints the job's id, or deletes one.",
    .usage = "[flags] list | show NAME | install FILE | instantiate NAME | delete NAME",
    .examples = "  millrace template install fit.json --name fit\n"
                "  millrace template instantiate fit --set copies=40 --wait\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = 2};

static const struct mr_column columns[] = {
    {"TEMPLATE", MR_COLUMN_KEY, false}, {"BYTES", MR_COLUMN_NUMBER, false}};

static void print_list(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *t = NULL;
    MR_AUTO(mr_table_free) struct mr_table *table = mr_table_new(columns, MR_ARRAY_LEN(columns));
    yyjson_arr_foreach(yyjson_obj_get(root, "templates"), at, max, t)
    {
        char size[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(t, "nbytes"), size);
        mr_table_add(table, "%s", mr_json_get_text(t, "name"));
        mr_table_add(table, "%s", size);
    }
    mr_table_print(table);
}

static void print_template(yyjson_val *t)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *param = NULL;
    struct mr_buf names;
    mr_buf_init(&names, TEMPLATE_BYTES_MAX);
    yyjson_arr_foreach(yyjson_obj_get(t, "params"), at, max, param)
        mr_buf_printf(&names, " %s", yyjson_get_str(param));
    mr_text_print(2, "template %s: %" PRIu64 " tasks; parameters:%.*s%s\n",
        mr_json_get_text(t, "name"), mr_json_get_u64(t, "tasks"), MR_STR_ARG(mr_buf_str(&names)),
        max ? "" : " none");
    mr_buf_fini(&names);
}

static int install(
    const struct mr_client *c, const struct config *k, const char *path, struct mr_error *e)
{
    struct mr_buf body;
    const struct mr_texts none = {0};
    yyjson_doc *doc = NULL;
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(k->name ? k->name : ""));
    mr_buf_init(&body, TEMPLATE_BYTES_MAX);
    int err = mr_jobfile_read(path, &none, NULL, &body, e);
    if (!err)
        err = mr_client_call(c, "POST", mr_buf_str(&body), &doc, e,
            "/v1/templates?name=%s&replace=%s", name, k->replace ? "true" : "false");
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) (void)printf("%s\n", mr_json_get_text(yyjson_doc_get_root(doc), "name"));
    yyjson_doc_free(doc);
    mr_buf_fini(&body);
    return err;
}

/* Writes {"params": {…}}. A value that is JSON keeps its type; any other value becomes a string. */
static int write_params(const struct mr_texts *set, char **text, size_t *n, struct mr_error *e)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_val *params = yyjson_mut_obj(doc);
    int err = MR_OK;
    yyjson_mut_doc_set_root(doc, root);
    (void)yyjson_mut_obj_add_val(doc, root, "params", params);
    for (size_t i = 0; i < set->count && !err; i++) {
        const char *item = set->items[i];
        const char *equals = strchr(item, '=');
        if (!equals || equals == item) {
            err = mr_fail(e, MR_EINVAL, "--set \"%s\": expected NAME=VALUE", item);
            continue;
        }
        yyjson_doc *typed = yyjson_read(equals + 1, strlen(equals + 1), YYJSON_READ_NUMBER_AS_RAW);
        yyjson_mut_val *v = typed ? yyjson_val_mut_copy(doc, yyjson_doc_get_root(typed))
                                  : yyjson_mut_strcpy(doc, equals + 1);
        yyjson_doc_free(typed);
        (void)yyjson_mut_obj_put(params, yyjson_mut_strncpy(doc, item, (size_t)(equals - item)), v);
    }
    if (!err) *text = yyjson_mut_write(doc, 0, n);
    yyjson_mut_doc_free(doc);
    return err;
}

static int instantiate(const struct mr_client *c, const struct config *k, const char *name,
    int *code, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    char *text = NULL;
    size_t n = 0;
    int err = write_params(&k->set, &text, &n, e);
    if (!err)
        err = mr_client_call(
            c, "POST", mr_str_of(text, n), &doc, e, "/v1/templates/%s:instantiate", name);
    free(text);
    const char *id = mr_json_get_text(yyjson_doc_get_root(doc), "id");
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) (void)printf("%s\n", id);
    (void)fflush(stdout);
    if (!err && k->wait)
        err = mr_client_follow(c, id, c->tty ? MR_FOLLOW_BAR : MR_FOLLOW_QUIET, code, NULL, e);
    yyjson_doc_free(doc);
    return err;
}

static int template(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    const char *verb = rest->items[0];
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(rest->count > 1 ? rest->items[1] : ""));
    if (!strcmp(verb, "list") && rest->count == 1)
        return mr_client_show_list(c, print_list, "/v1/templates", "templates", e);
    if (rest->count == 2) {
        if (!strcmp(verb, "show"))
            return mr_client_show(c, print_template, e, "/v1/templates/%s", name);
        if (!strcmp(verb, "install")) return install(c, k, rest->items[1], e);
        if (!strcmp(verb, "instantiate")) return instantiate(c, k, name, code, e);
        if (!strcmp(verb, "delete"))
            return mr_client_call(
                c, "DELETE", (struct mr_str){0}, NULL, e, "/v1/templates/%s", name);
    }
    *code = mr_client_wrong_usage(&mr_template_spec);
    return MR_OK;
}

int mr_command_template(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_template_spec, argc, argv, &k, template);
}
