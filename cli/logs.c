/* `millrace logs`: what the tasks of a job wrote, read from its stream of log events. */
#include "base/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/sse.h"
#include "host/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AWAY_MAX (60 * MR_SECOND)

struct config {
    struct mr_client_options client;
    bool follow;
};

static const struct mr_option options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "follow",
        .type = MR_OPTION_BOOL,
        .help = "go on until the task, or the job, is over",
        .at = offsetof(struct config, follow)},
};

static const struct mr_config_spec spec = {.program = "millrace logs",
    .summary =
        "Shows what the tasks of a job wrote: the last 64 KiB of each, also while they run.\n"
        "Without a KEY, each line begins with the key of its task.",
    .usage = "[flags] JOB [KEY]",
    .examples = "  millrace logs j1kq07ab-7\n  millrace logs j1kq07ab-7 train/fold-3 --follow\n",
    .options = options,
    .options_count = MR_ARRAY_LEN(options),
    .rest_min = 1,
    .rest_max = 2};

struct reader {
    struct mr_sse sse;
    struct mr_error error; /* that the stream told */
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
            (void)fprintf(
                stderr, "millrace logs: %" PRIu64 " bytes of %s are not kept\n", dropped, key);
        print_text(r, key, mr_json_get_text(root, "text"));
    }
    (void)fflush(stdout);
    yyjson_doc_free(doc);
}

static int read_stream(const struct mr_client *c, const char *job, const char *key, bool follow,
    struct reader *r, struct mr_error *e)
{
    char resume[MR_SSE_ID_BYTES_MAX + 32];
    struct mr_http_reply reply;
    struct mr_http_request request = {.method = "GET",
        .headers = {"Accept: text/event-stream"},
        .on_data = mr_sse_take,
        .ctx = &r->sse};
    (void)snprintf(resume, sizeof resume, "Last-Event-ID: %s", r->sse.id);
    if (r->sse.id[0]) request.headers[1] = resume;
    mr_http_reply_init(&reply);
    mr_sse_restart(&r->sse);
    int err = mr_client_send(c, &request, &reply, e, "/v1/jobs/%s/logs/events?key=%s&follow=%s",
        job, key, follow ? "true" : "false");
    mr_http_reply_fini(&reply);
    return err;
}

/* A stream that ends in order is over; one that breaks is gone on with where it was. */
static int show(
    const struct mr_client *c, const char *job, const char *key, bool follow, struct mr_error *e)
{
    struct reader r = {.json = c->json, .has_key = key[0] != 0};
    MR_AUTO(mr_free_ptr) char *job_escaped = mr_http_escape(mr_str(job));
    MR_AUTO(mr_free_ptr) char *key_escaped = mr_http_escape(mr_str(key));
    mr_sse_init(&r.sse, on_event, &r);
    mr_time heard = mr_clock_now();
    int err = MR_OK;
    for (;;) {
        char before[sizeof r.sse.id];
        memcpy(before, r.sse.id, sizeof before);
        err = read_stream(c, job_escaped, key_escaped, follow, &r, e);
        if (r.error.code) err = mr_fail(e, r.error.code, "%s", r.error.text);
        if (strcmp(before, r.sse.id) != 0) heard = mr_clock_now();
        if (err != MR_EAWAY || mr_clock_now() - heard > AWAY_MAX) break;
        mr_clock_sleep(200 * MR_MS); /* the gateway or the scheduler is coming back */
    }
    mr_sse_fini(&r.sse);
    return err;
}

int mr_command_logs(int argc, char **argv)
{
    struct config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    mr_config_load(&spec, argc, argv, &k, &rest);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err) err = show(&c, rest.items[0], rest.count > 1 ? rest.items[1] : "", k.follow, &e);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    mr_config_fini(&spec, &k);
    return err ? mr_client_fail("logs", &e) : MR_EXIT_OK;
}
