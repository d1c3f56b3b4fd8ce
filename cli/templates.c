/* `millrace template`: installs job files under a name, and makes jobs of them. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/follow.h"
#include "cli/jobfile.h"

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
        .help = "install: under this name (default: the file's own \"name\")",
        .at = offsetof(struct config, name)},
    {.name = "replace",
        .type = MR_OPTION_BOOL,
        .help = "install: there may be one of this name",
        .at = offsetof(struct config, replace)},
    {.name = "set",
        .type = MR_OPTION_TEXTS,
        .value = "NAME=VALUE",
        .help = "instantiate: a parameter of the template",
        .at = offsetof(struct config, set)},
    {.name = "wait",
        .type = MR_OPTION_BOOL,
        .help = "instantiate: wait for the end of the job",
        .at = offsetof(struct config, wait)},
};
static const struct mr_config_spec spec = {.program = "millrace template",
    .summary = "Lists templates, shows one, installs a job file (-: stdin) as one, makes a job of\n"
               "one and prints the job's id, or deletes one.",
    .usage = "[flags] list | show NAME | install FILE | instantiate NAME | delete NAME",
    .examples = "  millrace template install fit.json --name fit\n"
                "  millrace template instantiate fit --set copies=40 --wait\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = 2};

static int list(const struct mr_client *c, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    size_t at = 0;
    size_t max = 0;
    yyjson_val *t = NULL;
    int err = mr_client_list(c, "/v1/templates", "templates", &doc, e);
    if (!err && c->json) mr_client_print(doc);
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "templates"), at, max, t)
    {
        char size[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(t, "nbytes"), size);
        if (!c->json) (void)printf("%-40s %10s\n", mr_json_get_text(t, "name"), size);
    }
    yyjson_doc_free(doc);
    return err;
}

static int show(const struct mr_client *c, const char *name, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    size_t at = 0;
    size_t max = 0;
    yyjson_val *param = NULL;
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e, "/v1/templates/%s", name);
    yyjson_val *t = yyjson_doc_get_root(doc);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) {
        (void)printf("template %s: %" PRIu64 " tasks; parameters:", mr_json_get_text(t, "name"),
            mr_json_get_u64(t, "tasks"));
        yyjson_arr_foreach(yyjson_obj_get(t, "params"), at, max, param)(void)
            printf(" %s", yyjson_get_str(param));
        (void)printf("%s\n", max ? "" : " none");
    }
    yyjson_doc_free(doc);
    return err;
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

/* {"params": {…}}: a value that is JSON keeps its type, anything else is a text. */
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

static int act(const struct mr_client *c, const struct config *k, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const char *verb = rest->items[0];
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(rest->count > 1 ? rest->items[1] : ""));
    if (!strcmp(verb, "list")) return list(c, e);
    if (!strcmp(verb, "show")) return show(c, name, e);
    if (!strcmp(verb, "install")) return install(c, k, rest->items[1], e);
    if (!strcmp(verb, "instantiate")) return instantiate(c, k, name, code, e);
    return mr_client_call(c, "DELETE", (struct mr_str){0}, NULL, e, "/v1/templates/%s", name);
}

static bool is_right(const struct mr_texts *rest)
{
    static const char *const with_name[] = {"show", "install", "instantiate", "delete"};
    if (!strcmp(rest->items[0], "list")) return rest->count == 1;
    for (size_t i = 0; i < MR_ARRAY_LEN(with_name); i++)
        if (!strcmp(rest->items[0], with_name[i])) return rest->count == 2;
    return false;
}

int mr_command_template(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    int code = MR_EXIT_OK;
    int err = MR_OK;
    mr_config_load(&spec, argc, argv, &k, &rest);
    bool right = is_right(&rest);
    if (right) {
        err = mr_client_open(&k.client, &c, &e);
        if (!err) err = act(&c, &k, &rest, &code, &e);
    } else {
        (void)fprintf(stderr, "millrace template: expected %s; see `millrace help template`\n",
            strchr(spec.usage, ']') + 2);
        code = MR_EXIT_USAGE;
    }
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    mr_config_fini(&spec, &k);
    return err ? mr_client_fail("template", &e) : code;
}
