/* `millrace logs`: the output of a job's tasks, from the job's stream of log events. */
#include "base/alloc.h"
#include "cli/internal.h"
#include "cli/client/stream.h"

#include <inttypes.h>
#include <string.h>

struct config {
    struct mr_client_options client;
    bool follow;
};

static const struct mr_option options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "follow",
        .type = MR_OPTION_BOOL,
        .help = "continue until the task, or the job, has ended",
        .at = offsetof(struct config, follow)},
};

const struct mr_config_spec mr_logs_spec = {.program = "millrace logs",
    .summary =
        "Shows the output of a job's tasks: the last 64 KiB of each, also of running tasks.\n"
        "Without KEY each line begins with the key of its task.",
    .usage = "[flags] JOB [KEY]",
    .examples = "  millrace logs j1kq07ab-7\n  millrace logs j1kq07ab-7 train/fold-3 --follow\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = 2};

struct reader {
    struct mr_sse sse;
    struct mr_error error; /* the error that an event of the type "error" has brought */
    bool json, has_key;
};

static void print_text(const struct reader *r, const char *key, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (r->has_key)
            (void)printf("%.*s\n", (int)n, text);
        else
            (void)printf("%s | %.*s\n", key, (int)n, text);
        text += n + (text[n] == '\n');
    }
}

static void on_event(void *ctx, const char *type, struct mr_str data)
{
    struct reader *r = ctx;
    yyjson_doc *doc = yyjson_read(data.p, data.n, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *key = mr_json_get_text(root, "key");
    uint64_t dropped = mr_json_get_u64(root, "dropped");
    if (!strcmp(type, "error")) {
        (void)mr_fail(&r->error, MR_EINVAL, "%s", mr_json_get_text(root, "message"));
    } else if (r->json) {
        (void)printf("%.*s\n", MR_STR_ARG(data));
    } else {
        if (dropped)
            (void)fprintf(stderr, "millrace logs: %" PRIu64 " older bytes of %s are not kept\n",
                dropped, key);
        print_text(r, key, mr_json_get_text(root, "text"));
    }
    (void)fflush(stdout);
    yyjson_doc_free(doc);
}

static bool is_over(void *ctx)
{
    const struct reader *r = ctx;
    return r->error.code != 0;
}

/* Prints the log events until the answer is complete. After a broken connection, resumes the
 * stream. */
static int logs(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct config *k = config;
    struct reader r = {.json = c->json, .has_key = rest->count > 1};
    MR_AUTO(mr_free_ptr) char *job = mr_http_escape(mr_str(rest->items[0]));
    MR_AUTO(mr_free_ptr) char *key = mr_http_escape(mr_str(r.has_key ? rest->items[1] : ""));
    MR_AUTO(mr_free_ptr)
    char *path = mr_format(
        "/v1/jobs/%s/logs/events?key=%s&follow=%s", job, key, k->follow ? "true" : "false");
    (void)code;
    mr_sse_init(&r.sse, on_event, &r);
    const struct mr_stream stream = {.client = c,
        .path = path,
        .sse = &r.sse,
        .ends = true,
        .fd = -1,
        .is_over = is_over,
        .ctx = &r};
    int err = mr_stream_read(&stream, e);
    if (r.error.code) err = mr_fail(e, r.error.code, "%s", r.error.text);
    mr_sse_fini(&r.sse);
    return err;
}

int mr_command_logs(int argc, char **argv)
{
    struct config k = {0};
    return mr_client_run(&mr_logs_spec, argc, argv, &k, logs);
}
