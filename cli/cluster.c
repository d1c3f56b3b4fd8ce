/* ops, workers, top: what the cluster is and does. */
#include "base/alloc.h"
#include "base/units.h"
#include "cli/client.h"
#include "host/clock.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct config {
    struct mr_client_options client;
    mr_duration every;
    uint64_t count;
};

static const struct mr_option plain_options[] = {MR_CLIENT_OPTIONS};

static void print_params(yyjson_val *op)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *p = NULL;
    yyjson_arr_foreach(yyjson_obj_get(op, "parameters"), at, max, p)
    {
        const char *fallback = mr_json_get_text(p, "default_json");
        (void)printf("  %-14s %-22s %s%s%s%s\n", mr_json_get_text(p, "name"),
            mr_json_get_text(p, "type"), mr_json_get_text(p, "doc"),
            fallback[0] ? " (default " : "", fallback, fallback[0] ? ")" : "");
    }
}

static void print_ops(yyjson_val *root, bool one)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *op = NULL;
    yyjson_arr_foreach(yyjson_obj_get(root, "ops"), at, max, op)
    {
        (void)printf("%-24s %s\n", mr_json_get_text(op, "name"), mr_json_get_text(op, "summary"));
        if (!one) continue;
        print_params(op);
        (void)printf("  returns %s; runtime %s%s%s\n", mr_json_get_text(op, "returns"),
            mr_json_get_text(op, "runtime"),
            mr_json_get_bool(op, "deterministic") ? "; deterministic" : "",
            mr_json_get_bool(op, "variadic") ? "; the last parameter repeats" : "");
    }
}

static const struct mr_config_spec ops_spec = {.program = "millrace ops",
    .summary = "Lists the operators, or describes one.",
    .usage = "[flags] [NAME]",
    .examples = "  millrace ops\n  millrace ops array.mean\n",
    .options = plain_options,
    .options_count = MR_ARRAY_LEN(plain_options),
    .rest_max = 1};

int mr_command_ops(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    yyjson_doc *doc = NULL;
    mr_config_load(&ops_spec, argc, argv, &k, &rest);
    MR_AUTO(mr_free_ptr) char *name = mr_http_escape(mr_str(rest.count ? rest.items[0] : ""));
    MR_AUTO(mr_free_ptr) char *path = mr_format("/v1/ops?name=%s", name);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err) err = mr_client_list(&c, path, "ops", &doc, &e);
    if (!err && c.json)
        mr_client_print(doc);
    else if (!err)
        print_ops(yyjson_doc_get_root(doc), rest.count > 0);
    yyjson_doc_free(doc);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("ops", &e) : MR_EXIT_OK;
}

static void print_workers(yyjson_val *root)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *w = NULL;
    (void)printf("%-16s %-10s %-10s %5s %7s %7s %10s %12s %10s\n", "WORKER", "NODE", "STATE",
        "SLOTS", "RUNNING", "QUEUED", "HELD", "TASKS DONE", "PID");
    yyjson_arr_foreach(yyjson_obj_get(root, "workers"), at, max, w)
    {
        char held[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(w, "held_bytes"), held);
        (void)printf("%-16s %-10s %-10s %5" PRIu64 " %7" PRIu64 " %7" PRIu64 " %10s %12" PRIu64
                     " %10" PRIu64 "\n",
            mr_json_get_text(w, "name"), mr_json_get_text(w, "node"), mr_json_get_text(w, "state"),
            mr_json_get_u64(w, "slots"), mr_json_get_u64(w, "running"),
            mr_json_get_u64(w, "queued"), held, mr_json_get_u64(w, "tasks_done"),
            mr_json_get_u64(w, "pid"));
    }
}

static const struct mr_config_spec workers_spec = {.program = "millrace workers",
    .summary = "Lists the workers.",
    .examples = "  millrace workers\n",
    .options = plain_options,
    .options_count = MR_ARRAY_LEN(plain_options)};

int mr_command_workers(int argc, char **argv)
{
    struct config k = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    yyjson_doc *doc = NULL;
    mr_config_load(&workers_spec, argc, argv, &k, NULL);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err) err = mr_client_list(&c, "/v1/workers", "workers", &doc, &e);
    if (!err && c.json)
        mr_client_print(doc);
    else if (!err)
        print_workers(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    mr_client_fini(&c);
    return err ? mr_client_fail("workers", &e) : MR_EXIT_OK;
}

static const struct mr_option top_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "every",
        .type = MR_OPTION_DURATION,
        .value = "TIME",
        .init = "1s",
        .help = "how often to look",
        .at = offsetof(struct config, every),
        .min = 50 * MR_MS,
        .max = 3600 * MR_SECOND},
    {.name = "count",
        .letter = 'n',
        .type = MR_OPTION_U64,
        .value = "N",
        .help = "how many times (default: until Ctrl-C)",
        .at = offsetof(struct config, count)},
};
static const struct mr_config_spec top_spec = {.program = "millrace top",
    .summary = "Shows what the cluster does, live.",
    .examples = "  millrace top\n  millrace top -n 1 --json\n",
    .options = top_options,
    .options_count = MR_ARRAY_LEN(top_options)};

static void print_stores(yyjson_val *info)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *s = NULL;
    yyjson_arr_foreach(yyjson_obj_get(info, "store"), at, max, s)
    {
        char used[MR_BYTES_TEXT_MAX];
        char all[MR_BYTES_TEXT_MAX];
        mr_bytes_text(mr_json_get_u64(s, "used_bytes"), used);
        mr_bytes_text(mr_json_get_u64(s, "memory_bytes"), all);
        (void)printf("store %-10s %s of %s, %" PRIu64 " objects\n", mr_json_get_text(s, "node"),
            used, all, mr_json_get_u64(s, "objects"));
    }
}

/* One look: cluster, stores, workers. `before` is what had been done at the last look. */
static int look(const struct mr_client *c, uint64_t *before, mr_time *then, struct mr_error *e)
{
    yyjson_doc *info = NULL;
    yyjson_doc *workers = NULL;
    int err = mr_client_call(c, "GET", (struct mr_str){0}, &info, e, "/v1/cluster");
    if (!err) err = mr_client_list(c, "/v1/workers", "workers", &workers, e);
    yyjson_val *root = yyjson_doc_get_root(info);
    uint64_t done = mr_json_get_u64(root, "tasks_done");
    mr_time now = mr_clock_now();
    double rate = *then ? (double)(done - *before) * 1e9 / (double)(now - *then) : 0;
    if (!err && c->json) {
        mr_client_print(info);
    } else if (!err) {
        if (isatty(STDOUT_FILENO)) (void)printf("\033[H\033[2J");
        (void)printf("millrace %s, epoch %" PRIu64 ": %s%s, %" PRIu64 " jobs running, %" PRIu64
                     " tasks done (%.0f a second)\n",
            mr_json_get_text(root, "version"), mr_json_get_u64(root, "epoch"),
            mr_json_get_bool(root, "ready") ? "ready" : "not ready: ",
            mr_json_get_text(root, "not_ready"), mr_json_get_u64(root, "jobs_running"), done, rate);
        print_stores(root);
        print_workers(yyjson_doc_get_root(workers));
        (void)fflush(stdout);
    }
    *before = done;
    *then = now;
    yyjson_doc_free(info);
    yyjson_doc_free(workers);
    return err;
}

int mr_command_top(int argc, char **argv)
{
    struct config k = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    uint64_t before = 0;
    mr_time then = 0;
    mr_config_load(&top_spec, argc, argv, &k, NULL);
    int err = mr_client_open(&k.client, &c, &e);
    for (uint64_t i = 0; !err && (!k.count || i < k.count); i++) {
        if (i) mr_clock_sleep(k.every);
        err = look(&c, &before, &then, &e);
    }
    mr_client_fini(&c);
    return err ? mr_client_fail("top", &e) : MR_EXIT_OK;
}
