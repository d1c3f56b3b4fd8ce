/* The commands get, put, ls and rm: objects, names and results. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/internal.h"
#include "cli/term/table.h"
#include "store/object/format/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct config {
    struct mr_client_options client;
    const char *out;
    const char *format;
    const char *name;
    const char *prefix;
    bool persist;
    bool replace;
    bool force;
    bool objects;
};

static bool is_job_id(const char *text)
{
    mr_job_id id;
    return mr_job_id_parse(mr_str(text), &id) == MR_OK;
}

static bool is_object_id(const char *text)
{
    mr_object_id id;
    return mr_object_id_parse(mr_str(text), &id) == MR_OK;
}

/* ---- get ------------------------------------------------------------------------------------- */

static const struct mr_option get_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "out",
        .letter = 'o',
        .type = MR_OPTION_TEXT,
        .value = "FILE",
        .help = "write to this file (default: stdout)",
        .at = offsetof(struct config, out)},
    {.name = "format",
        .type = MR_OPTION_TEXT,
        .value = "NAME",
        .help = "npy, csv, json, raw, png or value (default: by the type of the value)",
        .at = offsetof(struct config, format)},
};
const struct mr_config_spec mr_get_spec = {.program = "millrace get",
    .summary = "Fetches the result of a key of a job, an object, or the object with a name.",
    .usage = "[flags] JOB KEY | OBJECT | NAME",
    .examples = "  millrace get j1kq07ab-7 z\n  millrace get mnist/mean -o mean.npy\n",
    .options = get_options,
    .options_count = MR_ARRAY_LEN(get_options),
    .rest_min = 1,
    .rest_max = 2};

static int write_to(void *ctx, const char *p, size_t n)
{
    return fwrite(p, 1, n, ctx) == n ? MR_OK : MR_EIO;
}

/* Returns the name without the prefix of the API: "a/b" for "name:a/b". */
static const char *bare_name(const char *name)
{
    return strncmp(name, "name:", 5) ? name : name + 5;
}

/* Sets `*object` to the id of the object with this name, to be freed with mr_release. */
static int resolve(const struct mr_client *c, const char *name, char **object, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(bare_name(name)));
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e, "/v1/names/%s", escaped);
    if (!err) *object = mr_copy_text(mr_json_get_text(yyjson_doc_get_root(doc), "object"));
    yyjson_doc_free(doc);
    return err;
}

static int get(const struct mr_client *c, const void *config, const struct mr_texts *what,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    (void)code;
    MR_AUTO(mr_free_ptr) char *accept = NULL;
    MR_AUTO(mr_free_ptr) char *object = NULL;
    struct mr_http_reply reply;
    enum mr_format format;
    bool of_job = what->count == 2;
    int err = MR_OK;
    if (k->format) {
        err = mr_format_find(mr_str(k->format), &format, e);
        if (err) return err;
        accept = mr_format("Accept: %s", mr_format_mime(format));
    }
    if (!of_job && is_object_id(what->items[0])) object = mr_copy_text(what->items[0]);
    if (!of_job && !object) err = resolve(c, what->items[0], &object, e);
    FILE *to = err || !k->out ? stdout : fopen(k->out, "wbe");
    if (!err && !to) err = mr_fail(e, MR_EIO, "%s: %s", k->out, strerror(errno));
    if (err) return err;
    struct mr_http_request request = {
        .method = "GET", .headers = {accept}, .on_data = write_to, .ctx = to};
    mr_http_reply_init(&reply);
    if (of_job) {
        MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(what->items[0]));
        MR_AUTO(mr_free_ptr) char *key = mr_http_escape(mr_str(what->items[1]));
        err = mr_client_send(c, &request, &reply, e, "/v1/jobs/%s/results/%s", id, key);
    } else {
        err = mr_client_send(c, &request, &reply, e, "/v1/objects/%s", object);
    }
    bool text = !strncmp(reply.content_type, "application/json", 16) && !k->out;
    if (!err && text) (void)fputc('\n', to);
    mr_http_reply_fini(&reply);
    if (k->out && fclose(to) && !err) err = mr_fail(e, MR_EIO, "%s: %s", k->out, strerror(errno));
    return err;
}

int mr_command_get(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_get_spec, argc, argv, &k, get);
}

/* ---- put ------------------------------------------------------------------------------------- */

static const struct mr_option put_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "name",
        .type = MR_OPTION_TEXT,
        .value = "NAME",
        .help = "name the object",
        .at = offsetof(struct config, name)},
    {.name = "replace",
        .type = MR_OPTION_BOOL,
        .help = "take the name from another object that has it",
        .at = offsetof(struct config, replace)},
    {.name = "persist",
        .type = MR_OPTION_BOOL,
        .help = "write the object to the node's disk",
        .at = offsetof(struct config, persist)},
    {.name = "format",
        .type = MR_OPTION_TEXT,
        .value = "NAME",
        .help = "npy, idx, csv, json, raw or value (default: by the file's name)",
        .at = offsetof(struct config, format)},
};
const struct mr_config_spec mr_put_spec = {.program = "millrace put",
    .summary = "Uploads a file of this machine as an object and prints the object's id.",
    .usage = "[flags] FILE",
    .examples = "  millrace put weights.npy --name weights --persist\n",
    .options = put_options,
    .options_count = MR_ARRAY_LEN(put_options),
    .rest_min = 1,
    .rest_max = 1};

static int put(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    const char *path = rest->items[0];
    (void)code;
    enum mr_format format = MR_FORMAT_RAW;
    struct mr_http_reply reply;
    int err = k->format ? mr_format_find(mr_str(k->format), &format, e) : MR_OK;
    if (!k->format && mr_format_of_path(mr_str(path), &format, NULL)) format = MR_FORMAT_RAW;
    if (err) return err;
    MR_AUTO(mr_free_ptr) char *type = mr_format("Content-Type: %s", mr_format_upload_mime(format));
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(k->name ? k->name : ""));
    struct mr_http_request request = {.method = "POST", .headers = {type}, .body_path = path};
    mr_http_reply_init(&reply);
    err = mr_client_send(c, &request, &reply, e, "/v1/objects?name=%s&replace=%s&persist=%s", name,
        k->replace ? "true" : "false", k->persist ? "true" : "false");
    yyjson_doc *doc = err ? NULL : yyjson_read((const char *)reply.body.p, reply.body.n, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json)
        (void)printf("%s  %s%s\n", mr_json_get_text(root, "id"), mr_json_get_text(root, "summary"),
            mr_json_get_bool(root, "durable") ? ""
                                              : "  (not durable: --persist writes it to disk)");
    yyjson_doc_free(doc);
    mr_http_reply_fini(&reply);
    return err;
}

int mr_command_put(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_put_spec, argc, argv, &k, put);
}

/* ---- ls -------------------------------------------------------------------------------------- */

static const struct mr_option ls_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "objects",
        .type = MR_OPTION_BOOL,
        .help = "list objects instead of names",
        .at = offsetof(struct config, objects)},
};
const struct mr_config_spec mr_ls_spec = {.program = "millrace ls",
    .summary = "Lists names, or objects.",
    .usage = "[flags] [PREFIX]",
    .examples = "  millrace ls\n  millrace ls mnist/\n  millrace ls --objects\n",
    .options = ls_options,
    .options_count = MR_ARRAY_LEN(ls_options),
    .rest_max = 1};

static const struct mr_column ls_columns[] = {{"OBJECT", MR_COLUMN_KEY, false},
    {"STATE", MR_COLUMN_WORD, false}, {"VALUE", MR_COLUMN_KEY, false},
    {"NAME", MR_COLUMN_KEY, false}};

static const struct mr_column object_columns[] = {{"OBJECT", MR_COLUMN_WORD, false},
    {"STATE", MR_COLUMN_WORD, false}, {"VALUE", MR_COLUMN_KEY, false}};

static void add_row(struct mr_table *t, yyjson_val *row, bool objects)
{
    bool durable = mr_json_get_bool(row, "durable");
    mr_table_add(t, "%s", mr_json_get_text(row, objects ? "id" : "object"));
    mr_table_add(t, "%s", objects ? mr_json_get_text(row, "state") : durable ? "durable" : "");
    mr_table_add(t, "%s", mr_json_get_text(row, "summary"));
    if (!objects) mr_table_add(t, "%s", mr_json_get_text(row, "name"));
}

static int ls(const struct mr_client *c, const void *config, const struct mr_texts *rest, int *code,
    struct mr_error *e)
{
    bool objects = ((const struct config *)config)->objects;
    MR_AUTO(mr_free_ptr) char *prefix = mr_http_escape(mr_str(rest->count ? rest->items[0] : ""));
    MR_AUTO(mr_free_ptr) char *token = mr_copy_text("");
    MR_AUTO(mr_table_free)
    struct mr_table *t = objects ? mr_table_new(object_columns, MR_ARRAY_LEN(object_columns))
                                 : mr_table_new(ls_columns, MR_ARRAY_LEN(ls_columns));
    (void)code;
    do {
        yyjson_doc *doc = NULL;
        size_t at = 0;
        size_t max = 0;
        yyjson_val *row = NULL;
        int err = objects ? mr_client_call(c, "GET", (struct mr_str){0}, &doc, e,
                                "/v1/objects?page_size=1000&page_token=%s", token)
                          : mr_client_call(c, "GET", (struct mr_str){0}, &doc, e,
                                "/v1/names?page_size=1000&prefix=%s&page_token=%s", prefix, token);
        if (err) return err;
        yyjson_val *root = yyjson_doc_get_root(doc);
        if (c->json) mr_client_print(doc);
        yyjson_arr_foreach(yyjson_obj_get(root, objects ? "objects" : "names"), at, max, row)
            add_row(t, row, objects);
        if (!c->json) mr_table_print(t);
        mr_release(token);
        token = mr_http_escape(mr_str(mr_json_get_text(root, "next_page_token")));
        yyjson_doc_free(doc);
    } while (token[0]);
    return MR_OK;
}

int mr_command_ls(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_ls_spec, argc, argv, &k, ls);
}

/* ---- rm -------------------------------------------------------------------------------------- */

static const struct mr_option rm_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "force",
        .type = MR_OPTION_BOOL,
        .help = "delete an object even if a job, a name or a worker holds it",
        .at = offsetof(struct config, force)},
};
const struct mr_config_spec mr_rm_spec = {.program = "millrace rm",
    .summary = "Forgets a job, deletes an object, or removes a name.",
    .usage = "[flags] JOB | OBJECT | NAME...",
    .examples = "  millrace rm j1kq07ab-7\n  millrace rm mnist/mean\n",
    .options = rm_options,
    .options_count = MR_ARRAY_LEN(rm_options),
    .rest_min = 1,
    .rest_max = 10000};

static int rm(const struct mr_client *c, const void *config, const struct mr_texts *rest, int *code,
    struct mr_error *e)
{
    const char *force = ((const struct config *)config)->force ? "true" : "false";
    int err = MR_OK;
    (void)code;
    for (size_t i = 0; i < rest->count && !err; i++) {
        const char *what = rest->items[i];
        const struct mr_str none = {0};
        MR_AUTO(mr_free_ptr) char *escaped = mr_http_escape(mr_str(bare_name(what)));
        if (is_job_id(what))
            err = mr_client_call(c, "DELETE", none, NULL, e, "/v1/jobs/%s", escaped);
        else if (is_object_id(what))
            err = mr_client_call(
                c, "DELETE", none, NULL, e, "/v1/objects/%s?force=%s", escaped, force);
        else
            err = mr_client_call(c, "DELETE", none, NULL, e, "/v1/names/%s", escaped);
    }
    return err;
}

int mr_command_rm(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_rm_spec, argc, argv, &k, rm);
}
