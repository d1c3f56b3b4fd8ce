/* `millrace channel` and `millrace queue`: what is in a channel, and what waits in a queue. */
#include "base/alloc.h"
#include "cli/client.h"
#include "cli/sse.h"
#include "host/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AWAY_MAX (60 * MR_SECOND)

struct config {
    struct mr_client_options client;
    const char *after;
    const char *item;
    mr_duration wait;
    uint64_t max;
    uint64_t items;
    uint64_t deliveries;
    bool ack;
};

/* {"NAME": ["…", …], …} as text to send. */
static int send_with(const struct mr_client *c, const char *method, yyjson_mut_doc *body,
    yyjson_doc **doc, struct mr_error *e, const char *path)
{
    size_t n = 0;
    char *text = yyjson_mut_write(body, 0, &n);
    int err = mr_client_call(c, method, mr_str_of(text, n), doc, e, "%s", path);
    free(text);
    yyjson_mut_doc_free(body);
    return err;
}

static int send_doc(const struct mr_client *c, yyjson_mut_doc *body, yyjson_doc **doc,
    struct mr_error *e, const char *path)
{
    return send_with(c, "POST", body, doc, e, path);
}

static yyjson_mut_doc *object_new(void)
{
    yyjson_mut_doc *d = yyjson_mut_doc_new(NULL);
    yyjson_mut_doc_set_root(d, yyjson_mut_obj(d));
    return d;
}

static yyjson_mut_val *texts_of(yyjson_mut_doc *d, char *const *items, size_t count)
{
    yyjson_mut_val *list = yyjson_mut_arr(d);
    for (size_t i = 0; i < count; i++)
        (void)yyjson_mut_arr_add_str(d, list, items[i]);
    return list;
}

static int wrong_usage(const char *command, const char *verbs)
{
    (void)fprintf(
        stderr, "millrace %s: expected %s; see `millrace %s --help`\n", command, verbs, command);
    return MR_EXIT_USAGE;
}

/* ---- channel ----------------------------------------------------------------------------------
 */

static const struct mr_option channel_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "after",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "read and watch: go on after this entry (watch: $ is only what comes)",
        .at = offsetof(struct config, after)},
};
static const struct mr_config_spec channel_spec = {.program = "millrace channel",
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

static int channel_list(const struct mr_client *c, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    size_t at = 0;
    size_t max = 0;
    yyjson_val *name = NULL;
    int err = mr_client_list(c, "/v1/channels", "channels", &doc, e);
    if (!err && c->json) mr_client_print(doc);
    yyjson_arr_foreach(yyjson_obj_get(yyjson_doc_get_root(doc), "channels"), at, max, name)
    {
        if (!c->json) (void)printf("%s\n", yyjson_get_str(name));
    }
    yyjson_doc_free(doc);
    return err;
}

/* All that is there, page by page. */
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
    struct mr_error error; /* that the stream told */
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

/* Until Ctrl-C, over whatever goes away and comes back meanwhile. */
static int channel_watch(
    const struct mr_client *c, const char *name, const char *after, struct mr_error *e)
{
    struct watch w = {.json = c->json};
    mr_sse_init(&w.sse, on_event, &w);
    (void)snprintf(w.sse.id, sizeof w.sse.id, "%s", after ? after : "");
    mr_time heard = mr_clock_now();
    int err = MR_OK;
    do {
        char before[sizeof w.sse.id], resume[MR_SSE_ID_BYTES_MAX + 32];
        struct mr_http_reply reply;
        struct mr_http_request request = {.method = "GET",
            .headers = {"Accept: text/event-stream"},
            .on_data = mr_sse_take,
            .ctx = &w.sse};
        memcpy(before, w.sse.id, sizeof before);
        (void)snprintf(resume, sizeof resume, "Last-Event-ID: %s", w.sse.id);
        if (w.sse.id[0]) request.headers[1] = resume;
        mr_http_reply_init(&reply);
        mr_sse_restart(&w.sse);
        err = mr_client_send(c, &request, &reply, e, "/v1/channels/%s/events", name);
        mr_http_reply_fini(&reply);
        if (strcmp(before, w.sse.id) != 0 || !err) heard = mr_clock_now();
        if (w.error.code) err = mr_fail(e, w.error.code, "%s", w.error.text);
        if (!err || err == MR_EAWAY) mr_clock_sleep(200 * MR_MS);
    } while ((!err || err == MR_EAWAY) && mr_clock_now() - heard < AWAY_MAX);
    mr_sse_fini(&w.sse);
    return err;
}

static int channel_append(
    const struct mr_client *c, const char *name, const struct mr_texts *rest, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = object_new();
    (void)yyjson_mut_obj_add_val(body, yyjson_mut_doc_get_root(body), "value_json",
        texts_of(body, (char *const *)(uintptr_t)rest->items + 2, rest->count - 2));
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/channels/%s:append", name);
    int err = send_doc(c, body, &doc, e, path);
    if (!err) (void)printf("%s\n", mr_json_get_text(yyjson_doc_get_root(doc), "last_id"));
    yyjson_doc_free(doc);
    return err;
}

int mr_command_channel(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    mr_config_load(&channel_spec, argc, argv, &k, &rest);
    const char *verb = rest.items[0];
    bool is_list = !strcmp(verb, "list") && rest.count == 1;
    bool is_read = !strcmp(verb, "read") && rest.count == 2;
    bool is_watch = !strcmp(verb, "watch") && rest.count == 2;
    bool is_append = !strcmp(verb, "append") && rest.count > 2;
    if (!is_list && !is_read && !is_watch && !is_append) {
        mr_texts_fini(&rest);
        return wrong_usage("channel", "list, read NAME, watch NAME or append NAME VALUE...");
    }
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(is_list ? "" : rest.items[1]));
    int err = mr_client_open(&k.client, &c, &e);
    if (!err && is_list) err = channel_list(&c, &e);
    if (!err && is_read) err = channel_read(&c, name, k.after, &e);
    if (!err && is_watch) err = channel_watch(&c, name, k.after, &e);
    if (!err && is_append) err = channel_append(&c, name, &rest, &e);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("channel", &e) : MR_EXIT_OK;
}

/* ---- queue ------------------------------------------------------------------------------------
 */

static const struct mr_option queue_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "wait",
        .type = MR_OPTION_DURATION,
        .value = "TIME",
        .help = "put: for room; take: for an item (default: not at all)",
        .at = offsetof(struct config, wait)},
    {.name = "max",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "take: so many items at most (default: 1)",
        .at = offsetof(struct config, max)},
    {.name = "id",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "put: the item's id; the same one twice is one item",
        .at = offsetof(struct config, item)},
    {.name = "ack",
        .type = MR_OPTION_BOOL,
        .help = "take: acknowledge at once; without it the items come again after 30 s",
        .at = offsetof(struct config, ack)},
    {.name = "items",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "create: room for so many items (default: 64)",
        .at = offsetof(struct config, items),
        .max = 1000000},
    {.name = "deliveries",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "create: an item that was taken so often without an ack is set aside (default: 5)",
        .at = offsetof(struct config, deliveries),
        .max = 1000},
};
static const struct mr_config_spec queue_spec = {.program = "millrace queue",
    .summary = "Lists queues, shows one, makes one, puts a JSON value, takes items, or closes one.",
    .usage = "[flags] list | get NAME | create NAME | put NAME VALUE | take NAME | close NAME",
    .examples =
        "  millrace queue list\n  millrace queue put batches '{\"file\": \"a.npy\"}' --wait 10s\n"
        "  millrace queue take batches --ack\n",
    .options = queue_options,
    .options_count = MR_ARRAY_LEN(queue_options),
    .rest_min = 1,
    .rest_max = 3};

static void print_queue(yyjson_val *q)
{
    (void)printf("%-24s %" PRIu64 " waiting, %" PRIu64 " leased of %" PRIu64 ", %" PRIu64
                 " dead, %" PRIu64 " put, %" PRIu64 " done%s\n",
        mr_json_get_text(q, "queue"), mr_json_get_u64(q, "waiting"), mr_json_get_u64(q, "leased"),
        mr_json_get_u64(q, "items_max"), mr_json_get_u64(q, "dead"),
        mr_json_get_u64(q, "put_count"), mr_json_get_u64(q, "acked_count"),
        mr_json_get_bool(q, "closed") ? ", closed" : "");
}

static int queue_show(const struct mr_client *c, const char *name, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    size_t at = 0;
    size_t max = 0;
    yyjson_val *q = NULL;
    int err = name ? mr_client_call(c, "GET", (struct mr_str){0}, &doc, e, "/v1/queues/%s", name)
                   : mr_client_list(c, "/v1/queues", "queues", &doc, e);
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json && name) print_queue(root);
    yyjson_arr_foreach(yyjson_obj_get(root, "queues"), at, max, q)
    {
        if (!c->json) print_queue(q);
    }
    yyjson_arr_foreach(yyjson_obj_get(root, "dead_items"), at, max, q)
    {
        if (!c->json)
            (void)printf(
                "  dead: %s, %s\n", mr_json_get_text(q, "item_id"), mr_json_get_text(q, "reason"));
    }
    yyjson_doc_free(doc);
    return err;
}

/* A queue that is there gets the new bounds. */
static int queue_create(
    const struct mr_client *c, const struct config *k, const char *name, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = object_new();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)yyjson_mut_obj_add_uint(body, root, "items_max", k->items);
    (void)yyjson_mut_obj_add_uint(body, root, "deliveries_max", k->deliveries);
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/queues/%s", name);
    int err = send_with(c, "PUT", body, &doc, e, path);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) print_queue(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

static int queue_put(const struct mr_client *c, const struct config *k, const char *name,
    const char *value, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = object_new();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)yyjson_mut_obj_add_str(body, root, "value_json", value);
    (void)yyjson_mut_obj_add_real(body, root, "wait_s", (double)k->wait / 1e9);
    if (k->item) (void)yyjson_mut_obj_add_str(body, root, "item_id", k->item);
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/queues/%s:put", name);
    int err = send_doc(c, body, &doc, e, path);
    yyjson_val *put = yyjson_doc_get_root(doc);
    if (!err)
        (void)printf("%s%s\n", mr_json_get_text(put, "item_id"),
            mr_json_get_bool(put, "was_there") ? "  (it was there)" : "");
    yyjson_doc_free(doc);
    return err;
}

static int queue_take(
    const struct mr_client *c, const struct config *k, const char *name, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = object_new();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)yyjson_mut_obj_add_uint(body, root, "items_max", k->max);
    (void)yyjson_mut_obj_add_real(body, root, "wait_s", (double)k->wait / 1e9);
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/queues/%s:take", name);
    MR_AUTO(mr_free_ptr) char *ack_path = mr_format("/v1/queues/%s:ack", name);
    int err = send_doc(c, body, &doc, e, path);
    if (err) return err;
    size_t at = 0;
    size_t max = 0;
    yyjson_val *item = NULL;
    yyjson_val *taken = yyjson_doc_get_root(doc);
    yyjson_mut_doc *ack = object_new();
    yyjson_mut_val *receipts = yyjson_mut_arr(ack);
    (void)yyjson_mut_obj_add_val(ack, yyjson_mut_doc_get_root(ack), "receipts", receipts);
    if (c->json) mr_client_print(doc);
    yyjson_arr_foreach(yyjson_obj_get(taken, "items"), at, max, item)
    {
        const char *value = mr_json_get_text(item, "value_json");
        if (!c->json)
            (void)printf("%s  %s\n", mr_json_get_text(item, "item_id"),
                value[0] ? value : mr_json_get_text(item, "object"));
        (void)yyjson_mut_arr_add_str(ack, receipts, mr_json_get_text(item, "receipt"));
    }
    if (!max && !c->json)
        (void)fprintf(stderr, "%s\n",
            mr_json_get_bool(taken, "closed") ? "closed and empty" : "nothing is waiting");
    if (max && k->ack)
        err = send_doc(c, ack, NULL, e, ack_path);
    else
        yyjson_mut_doc_free(ack);
    yyjson_doc_free(doc);
    return err;
}

int mr_command_queue(int argc, char **argv)
{
    struct config k = {.max = 1};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    mr_config_load(&queue_spec, argc, argv, &k, &rest);
    const char *verb = rest.items[0];
    bool is_list = !strcmp(verb, "list") && rest.count == 1;
    bool is_get = !strcmp(verb, "get") && rest.count == 2;
    bool is_create = !strcmp(verb, "create") && rest.count == 2;
    bool is_put = !strcmp(verb, "put") && rest.count == 3;
    bool is_take = !strcmp(verb, "take") && rest.count == 2;
    bool is_close = !strcmp(verb, "close") && rest.count == 2;
    if (!is_list && !is_get && !is_create && !is_put && !is_take && !is_close) {
        mr_texts_fini(&rest);
        return wrong_usage(
            "queue", "list, get NAME, create NAME, put NAME VALUE, take NAME or close NAME");
    }
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(is_list ? "" : rest.items[1]));
    int err = mr_client_open(&k.client, &c, &e);
    if (!err && (is_list || is_get)) err = queue_show(&c, is_get ? name : NULL, &e);
    if (!err && is_create) err = queue_create(&c, &k, name, &e);
    if (!err && is_put) err = queue_put(&c, &k, name, rest.items[2], &e);
    if (!err && is_take) err = queue_take(&c, &k, name, &e);
    if (!err && is_close)
        err = mr_client_call(&c, "POST", MR_STR("{}"), NULL, &e, "/v1/queues/%s:close", name);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("queue", &e) : MR_EXIT_OK;
}
