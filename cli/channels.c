/* `millrace channel`: reads, follows and appends to channels. */
#include "base/alloc.h"
#include "cli/internal.h"
#include "cli/client/stream.h"

#include <stdlib.h>
#include <string.h>

struct config {
    struct mr_client_options client;
    const char *after;
};

static const struct mr_option channel_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "after",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "read, watch: begin after this entry (watch: $ means only new entries)",
        .at = offsetof(struct config, after)},
};
const struct mr_config_spec mr_channel_spec = {.program = "millrace channel",
    .summary = "Reads a channel, follows it, or appends JSON values to it.",
    .usage = "[flags] list | read NAME | watch NAME | append NAME VALUE...",
    .examples =
        "  millrace channel watch t1-7.scores\n  millrace channel append notes '{\"lr\": 0.1}'\n",
    .options = channel_options,
    .options_count = MR_ARRAY_LEN(channel_options),
    .rest_min = 1,
    .rest_max = 1002};

static void print_entry(yyjson_val *entry)
{
    (void)printf("%s  %s\n", mr_json_get_text(entry, "id"), mr_json_get_text(entry, "value_json"));
}

static void print_names(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *name = NULL;
    yyjson_arr_foreach(yyjson_obj_get(root, "channels"), at, max, name)(void)
        printf("%s\n", yyjson_get_str(name));
}

static int channel_list(const struct mr_client *c, struct mr_error *e)
{
    return mr_client_show_list(c, print_names, "/v1/channels", "channels", e);
}

/* Reads all entries, page by page. */
static int channel_read(
    const struct mr_client *c, const char *name, const char *after, struct mr_error *e)
{
    char last[MR_SSE_ID_BYTES_MAX];
    (void)snprintf(last, sizeof last, "%s", after ? after : "");
    for (;;) {
        MR_AUTO(mr_free_ptr) char *from = mr_http_escape(mr_str(last));
        yyjson_doc *doc = NULL;
        size_t at = 0;
        size_t max = 0;
        yyjson_val *entry = NULL;
        int err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e,
            "/v1/channels/%s/entries?after_id=%s", name, from);
        if (err) return err;
        yyjson_val *entries = yyjson_obj_get(yyjson_doc_get_root(doc), "entries");
        if (c->json) mr_client_print(doc);
        yyjson_arr_foreach(entries, at, max, entry)
        {
            if (!c->json) print_entry(entry);
            (void)snprintf(last, sizeof last, "%s", mr_json_get_text(entry, "id"));
        }
        yyjson_doc_free(doc);
        if (!max) return MR_OK;
    }
}

struct watch {
    struct mr_sse sse;
    struct mr_error error; /* the error that an event of the type "error" has brought */
    bool json;
};

static void on_event(void *ctx, const char *type, struct mr_str data)
{
    struct watch *w = ctx;
    yyjson_doc *doc = yyjson_read(data.p, data.n, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (!strcmp(type, "error"))
        (void)mr_fail(&w->error, MR_EINVAL, "%s", mr_json_get_text(root, "message"));
    else if (w->json)
        (void)printf("%.*s\n", MR_STR_ARG(data));
    else
        print_entry(root);
    (void)fflush(stdout);
    yyjson_doc_free(doc);
}

static bool is_over(void *ctx)
{
    const struct watch *w = ctx;
    return w->error.code != 0;
}

/* Follows the channel, across broken connections, until an error event comes or Ctrl-C ends the
 * process. */
static int channel_watch(
    const struct mr_client *c, const char *name, const char *after, struct mr_error *e)
{
    struct watch w = {.json = c->json};
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/channels/%s/events", name);
    mr_sse_init(&w.sse, on_event, &w);
    (void)snprintf(w.sse.id, sizeof w.sse.id, "%s", after ? after : "");
    const struct mr_stream stream = {
        .client = c, .path = path, .sse = &w.sse, .fd = -1, .is_over = is_over, .ctx = &w};
    int err = mr_stream_read(&stream, e);
    if (w.error.code) err = mr_fail(e, w.error.code, "%s", w.error.text);
    mr_sse_fini(&w.sse);
    return err;
}

static int channel_append(
    const struct mr_client *c, const char *name, const struct mr_texts *rest, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = mr_json_object();
    yyjson_mut_val *values =
        yyjson_mut_obj_add_arr(body, yyjson_mut_doc_get_root(body), "value_json");
    for (size_t i = 2; i < rest->count; i++)
        (void)yyjson_mut_arr_add_str(body, values, rest->items[i]);
    int err = mr_client_put(c, "POST", &body, &doc, e, "/v1/channels/%s:append", name);
    if (!err) (void)printf("%s\n", mr_json_get_text(yyjson_doc_get_root(doc), "last_id"));
    yyjson_doc_free(doc);
    return err;
}

static int channel(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    const char *verb = rest->items[0];
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(rest->count > 1 ? rest->items[1] : ""));
    if (!strcmp(verb, "list") && rest->count == 1) return channel_list(c, e);
    if (!strcmp(verb, "read") && rest->count == 2) return channel_read(c, name, k->after, e);
    if (!strcmp(verb, "watch") && rest->count == 2) return channel_watch(c, name, k->after, e);
    if (!strcmp(verb, "append") && rest->count > 2) return channel_append(c, name, rest, e);
    *code = mr_client_wrong_usage(&mr_channel_spec);
    return MR_OK;
}

int mr_command_channel(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_channel_spec, argc, argv, &k, channel);
}
