/* `millrace queue`: shows queues and their dead items, puts and takes items. */
#include "base/alloc.h"
#include "cli/internal.h"
#include "cli/term/table.h"
#include "cli/term/text.h"

#include <inttypes.h>
#include <string.h>

struct config {
    struct mr_client_options client;
    const char *item;
    mr_duration wait;
    uint64_t max;
    uint64_t items;
    uint64_t deliveries;
    bool ack;
};

static const struct mr_option queue_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "wait",
        .type = MR_OPTION_DURATION,
        .value = "TIME",
        .help = "put: wait for room; take: wait for an item (default: do not wait)",
        .at = offsetof(struct config, wait)},
    {.name = "max",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "take: at most N items (default: 1)",
        .at = offsetof(struct config, max)},
    {.name = "id",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "put: the item's id; a second put with this id adds no item",
        .at = offsetof(struct config, item)},
    {.name = "ack",
        .type = MR_OPTION_BOOL,
        .help = "take: acknowledge at once; otherwise the items are delivered again after 30 s",
        .at = offsetof(struct config, ack)},
    {.name = "items",
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "create: room for N items (default: 64)",
        .at = offsetof(struct config, items),
        .max = 1000000},
    {.name = "deliveries",
        .type = MR_OPTION_U64,
        .value = "N",
        .help =
            "create: an item is dead after N deliveries without an acknowledgement (default: 5)",
        .at = offsetof(struct config, deliveries),
        .max = 1000},
};
const struct mr_config_spec mr_queue_spec = {.program = "millrace queue",
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
    mr_text_print(4,
        "%s: %" PRIu64 " waiting, %" PRIu64 " leased of %" PRIu64 ", %" PRIu64 " dead, %" PRIu64
        " put, %" PRIu64 " done%s\n",
        mr_json_get_text(q, "queue"), mr_json_get_u64(q, "waiting"), mr_json_get_u64(q, "leased"),
        mr_json_get_u64(q, "items_max"), mr_json_get_u64(q, "dead"),
        mr_json_get_u64(q, "put_count"), mr_json_get_u64(q, "acked_count"),
        mr_json_get_bool(q, "closed") ? ", closed" : "");
}

static void print_dead(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *item = NULL;
    yyjson_arr_foreach(yyjson_obj_get(root, "dead_items"), at, max, item) mr_text_print(
        4, "  dead: %s, %s\n", mr_json_get_text(item, "item_id"), mr_json_get_text(item, "reason"));
}

static void print_one(yyjson_val *root)
{
    print_queue(root);
    print_dead(root);
}

static const struct mr_column queue_columns[] = {{"QUEUE", MR_COLUMN_KEY, false},
    {"WAITING", MR_COLUMN_NUMBER, false}, {"LEASED", MR_COLUMN_NUMBER, false},
    {"ROOM", MR_COLUMN_NUMBER, true}, {"DEAD", MR_COLUMN_NUMBER, false},
    {"PUT", MR_COLUMN_NUMBER, false}, {"DONE", MR_COLUMN_NUMBER, false},
    {"STATE", MR_COLUMN_WORD, true}};

static void print_list(yyjson_val *root)
{
    static const char *const numbers[] = {
        "waiting", "leased", "items_max", "dead", "put_count", "acked_count"};
    size_t at = 0;
    size_t max = 0;
    yyjson_val *q = NULL;
    MR_AUTO(mr_table_free)
    struct mr_table *t = mr_table_new(queue_columns, MR_ARRAY_LEN(queue_columns));
    yyjson_arr_foreach(yyjson_obj_get(root, "queues"), at, max, q)
    {
        mr_table_add(t, "%s", mr_json_get_text(q, "queue"));
        for (size_t i = 0; i < MR_ARRAY_LEN(numbers); i++)
            mr_table_add(t, "%" PRIu64, mr_json_get_u64(q, numbers[i]));
        mr_table_add(t, "%s", mr_json_get_bool(q, "closed") ? "closed" : "open");
    }
    mr_table_print(t);
}

/* Creates a queue. If the queue exists, it gets the bounds that are not 0 and keeps the others. */
static int queue_create(
    const struct mr_client *c, const struct config *k, const char *name, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)yyjson_mut_obj_add_uint(body, root, "items_max", k->items);
    (void)yyjson_mut_obj_add_uint(body, root, "deliveries_max", k->deliveries);
    int err = mr_client_put(c, "PUT", &body, &doc, e, "/v1/queues/%s", name);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) print_queue(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

static int queue_put(const struct mr_client *c, const struct config *k, const char *name,
    const char *value, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)yyjson_mut_obj_add_str(body, root, "value_json", value);
    (void)yyjson_mut_obj_add_real(body, root, "wait_s", (double)k->wait / 1e9);
    if (k->item) (void)yyjson_mut_obj_add_str(body, root, "item_id", k->item);
    int err = mr_client_put(c, "POST", &body, &doc, e, "/v1/queues/%s:put", name);
    yyjson_val *put = yyjson_doc_get_root(doc);
    if (!err)
        (void)printf("%s%s\n", mr_json_get_text(put, "item_id"),
            mr_json_get_bool(put, "was_there") ? "  (the item was there already)" : "");
    yyjson_doc_free(doc);
    return err;
}

static int queue_take(
    const struct mr_client *c, const struct config *k, const char *name, struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)yyjson_mut_obj_add_uint(body, root, "items_max", k->max);
    (void)yyjson_mut_obj_add_real(body, root, "wait_s", (double)k->wait / 1e9);
    int err = mr_client_put(c, "POST", &body, &doc, e, "/v1/queues/%s:take", name);
    if (err) return err;
    size_t at = 0;
    size_t max = 0;
    yyjson_val *item = NULL;
    yyjson_val *taken = yyjson_doc_get_root(doc);
    yyjson_mut_doc *ack = mr_json_object();
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
    if (max && k->ack) err = mr_client_put(c, "POST", &ack, NULL, e, "/v1/queues/%s:ack", name);
    yyjson_mut_doc_free(ack);
    yyjson_doc_free(doc);
    return err;
}

static int queue(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    const char *verb = rest->items[0];
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(rest->count > 1 ? rest->items[1] : ""));
    if (!strcmp(verb, "list") && rest->count == 1)
        return mr_client_show_list(c, print_list, "/v1/queues", "queues", e);
    if (!strcmp(verb, "put") && rest->count == 3) return queue_put(c, k, name, rest->items[2], e);
    if (rest->count == 2) {
        if (!strcmp(verb, "get")) return mr_client_show(c, print_one, e, "/v1/queues/%s", name);
        if (!strcmp(verb, "create")) return queue_create(c, k, name, e);
        if (!strcmp(verb, "take")) return queue_take(c, k, name, e);
        if (!strcmp(verb, "close"))
            return mr_client_call(c, "POST", MR_STR("{}"), NULL, e, "/v1/queues/%s:close", name);
    }
    *code = mr_client_wrong_usage(&mr_queue_spec);
    return MR_OK;
}

int mr_command_queue(int argc, char **argv)
{
    struct config k = {.max = 1};
    return mr_client_run(&mr_queue_spec, argc, argv, &k, queue);
}
