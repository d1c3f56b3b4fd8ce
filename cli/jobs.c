/* submit, status, watch, explain, cancel. */
#include "base/alloc.h"
#include "base/limits.h"
#include "cli/follow.h"
#include "cli/jobfile.h"
#include "cli/submit.h"

#include <inttypes.h>
#include <string.h>

struct submit_config {
    struct mr_client_options client;
    struct mr_texts set;
    const char *data;
    const char *request_id;
    bool wait;
};

int mr_client_submit(const struct mr_client *c, struct mr_str body, const char *request_id,
    yyjson_doc **doc, struct mr_error *e)
{
    struct mr_http_reply reply;
    struct mr_http_request request = {
        .method = "POST", .headers = {"Content-Type: application/json"}, .body = body};
    MR_AUTO(mr_free_ptr) char *key = NULL;
    if (request_id) {
        key = mr_format("Idempotency-Key: %s", request_id);
        request.headers[1] = key;
    }
    mr_http_reply_init(&reply);
    int err = mr_client_send(c, &request, &reply, e, "/v1/jobs");
    if (!err) *doc = yyjson_read((const char *)reply.body.p, reply.body.n, 0);
    if (!err && !*doc) err = mr_fail(e, MR_EFORMAT, "the gateway did not answer JSON");
    mr_http_reply_fini(&reply);
    return err;
}

static const struct mr_option submit_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "set",
        .type = MR_OPTION_TEXTS,
        .value = "NAME=VALUE",
        .help = "set a parameter of the job file",
        .at = offsetof(struct submit_config, set)},
    {.name = "data",
        .type = MR_OPTION_TEXT,
        .value = "DIR",
        .help = "the same as --set data=DIR, with the directory's full path",
        .at = offsetof(struct submit_config, data)},
    {.name = "request-id",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "the same id again is the same job",
        .at = offsetof(struct submit_config, request_id)},
    {.name = "wait",
        .type = MR_OPTION_BOOL,
        .help = "wait for the end",
        .at = offsetof(struct submit_config, wait)},
};
static const struct mr_config_spec submit_spec = {.program = "millrace submit",
    .summary = "Submits a job file (-: stdin) and prints the job's id.",
    .usage = "[flags] FILE.json",
    .examples =
        "  millrace submit examples/add.json\n  millrace submit examples/mnist-stats.json --set copies=4 --wait\n"
        "  make-graph | millrace submit -\n",
    .options = submit_options,
    .options_count = MR_ARRAY_LEN(submit_options),
    .rest_min = 1,
    .rest_max = 1};

static int submit(const struct submit_config *k, const char *path, int *code, struct mr_error *e)
{
    struct mr_client c = {0};
    struct mr_buf body;
    yyjson_doc *doc = NULL;
    mr_buf_init(&body, MR_JOB_BODY_BYTES_MAX);
    int err = mr_jobfile_read(path, &k->set, k->data, &body, e);
    if (!err) err = mr_client_open(&k->client, &c, e);
    if (!err) err = mr_client_submit(&c, mr_buf_str(&body), k->request_id, &doc, e);
    mr_buf_fini(&body);
    if (!err) {
        const char *id = mr_json_get_text(yyjson_doc_get_root(doc), "id");
        if (k->client.json)
            mr_client_print(doc);
        else
            (void)printf("%s\n", id);
        (void)fflush(stdout);
        if (k->wait)
            err = mr_client_follow(&c, id, c.tty ? MR_FOLLOW_BAR : MR_FOLLOW_QUIET, code, NULL, e);
    }
    yyjson_doc_free(doc);
    mr_client_fini(&c);
    return err;
}

int mr_command_submit(int argc, char **argv)
{
    struct submit_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    int code = MR_EXIT_OK;
    mr_config_load(&submit_spec, argc, argv, &k, &rest);
    int err = submit(&k, rest.items[0], &code, &e);
    mr_texts_fini(&rest);
    mr_config_fini(&submit_spec, &k);
    return err ? mr_client_fail("submit", &e) : code;
}

/* ---- one id ---------------------------------------------------------------------------------- */

struct id_config {
    struct mr_client_options client;
    const char *reason;
    const char *state;
    const char *label;
    uint64_t limit;
};

static const struct mr_option id_options[] = {MR_CLIENT_OPTIONS};

static void print_jobs(yyjson_val *root, bool is_first, bool is_last)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *job = NULL;
    if (is_first)
        (void)printf(
            "%-10s %-10s %10s %10s %8s  %s\n", "ID", "STATE", "DONE", "TASKS", "FAILED", "NAME");
    yyjson_arr_foreach(yyjson_obj_get(root, "jobs"), at, max, job)
    {
        yyjson_val *counts = yyjson_obj_get(job, "counts");
        (void)printf("%-10s %-10s %10" PRIu64 " %10" PRIu64 " %8" PRIu64 "  %s%s\n",
            mr_json_get_text(job, "id"), mr_job_state_word(mr_json_get_text(job, "state")),
            mr_json_get_u64(counts, "done"),
            mr_json_get_u64(counts, "submitted") - mr_json_get_u64(counts, "culled"),
            mr_json_get_u64(counts, "erred"), mr_json_get_text(job, "name"),
            mr_job_has_exhausted(job) ? " (not converged)" : "");
    }
    if (is_last && mr_json_get_text(root, "next_page_token")[0]) (void)printf("… and older ones\n");
}

static const struct mr_option status_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "state",
        .type = MR_OPTION_TEXT,
        .value = "STATE",
        .help = "only jobs that are pending, running, done, failed or cancelled",
        .at = offsetof(struct id_config, state)},
    {.name = "label",
        .type = MR_OPTION_TEXT,
        .value = "NAME[=VALUE]",
        .help = "only jobs with this label",
        .at = offsetof(struct id_config, label)},
    {.name = "limit",
        .letter = 'n',
        .type = MR_OPTION_U64,
        .value = "N",
        .init = "100",
        .help = "so many jobs at most, the newest first",
        .at = offsetof(struct id_config, limit),
        .min = 1,
        .max = 1000000},
};

static int find_state(const char *word, const char **state, struct mr_error *e)
{
    static const char *const states[] = {
        "JOB_PENDING", "JOB_RUNNING", "JOB_DONE", "JOB_FAILED", "JOB_CANCELLED"};
    *state = "";
    if (!word) return MR_OK;
    for (size_t i = 0; i < MR_ARRAY_LEN(states); i++)
        if (!strcmp(word, mr_job_state_word(states[i]))) *state = states[i];
    if ((*state)[0]) return MR_OK;
    return mr_fail(
        e, MR_EINVAL, "--state: \"%s\" is not pending, running, done, failed or cancelled", word);
}

/* Page by page, until there are `limit`. With --json, each page is a document of its own. */
static int list_jobs(const struct mr_client *c, const struct id_config *k, struct mr_error *e)
{
    const char *state = "";
    int err = find_state(k->state, &state, e);
    MR_AUTO(mr_free_ptr) char *label = mr_http_escape(mr_str(k->label ? k->label : ""));
    MR_AUTO(mr_free_ptr) char *token = mr_copy_text("");
    for (uint64_t left = k->limit; !err && left;) {
        yyjson_doc *doc = NULL;
        uint64_t size = MR_MIN(left, UINT64_C(1000));
        err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e,
            "/v1/jobs?page_size=%" PRIu64 "&label=%s&page_token=%s%s%s", size, label, token,
            state[0] ? "&state=" : "", state);
        if (err) return err;
        yyjson_val *root = yyjson_doc_get_root(doc);
        uint64_t count = yyjson_arr_size(yyjson_obj_get(root, "jobs"));
        bool is_first = left == k->limit;
        left -= MR_MIN(left, count);
        if (c->json)
            mr_client_print(doc);
        else
            print_jobs(root, is_first, !left);
        mr_release(token);
        token = mr_http_escape(mr_str(mr_json_get_text(root, "next_page_token")));
        yyjson_doc_free(doc);
        if (!token[0] || !count) break;
    }
    return err;
}

static const struct mr_config_spec status_spec = {.program = "millrace status",
    .summary = "Shows one job, or all of them.",
    .usage = "[flags] [JOB]",
    .examples =
        "  millrace status\n  millrace status --state failed --label team=fraud --limit 20\n"
        "  millrace status j1kq07ab-7 --json\n",
    .options = status_options,
    .options_count = MR_ARRAY_LEN(status_options),
    .rest_max = 1};

int mr_command_status(int argc, char **argv)
{
    struct id_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    yyjson_doc *doc = NULL;
    mr_config_load(&status_spec, argc, argv, &k, &rest);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err && rest.count) {
        MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(rest.items[0]));
        err = mr_client_call(&c, "GET", (struct mr_str){0}, &doc, &e, "/v1/jobs/%s", id);
    } else if (!err) {
        err = list_jobs(&c, &k, &e);
    }
    if (doc && c.json)
        mr_client_print(doc);
    else if (doc)
        mr_job_print(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("status", &e) : MR_EXIT_OK;
}

static const struct mr_config_spec watch_spec = {.program = "millrace watch",
    .summary =
        "Follows a job until it ends; the exit code tells how (0 done, 4 failed or cancelled).",
    .usage = "[flags] JOB",
    .examples = "  millrace watch j1kq07ab-7\n",
    .options = id_options,
    .options_count = MR_ARRAY_LEN(id_options),
    .rest_min = 1,
    .rest_max = 1};

int mr_command_watch(int argc, char **argv)
{
    struct id_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    int code = MR_EXIT_OK;
    mr_config_load(&watch_spec, argc, argv, &k, &rest);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err)
        err = mr_client_follow(
            &c, rest.items[0], c.json ? MR_FOLLOW_JSON : MR_FOLLOW_LINES, &code, NULL, &e);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("watch", &e) : code;
}

static void print_list(const char *title, yyjson_val *list)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *item = NULL;
    if (!yyjson_arr_size(list)) return;
    (void)printf("  %s:", title);
    yyjson_arr_foreach(list, at, max, item)(void) printf(" %s", yyjson_get_str(item));
    (void)printf("\n");
}

static void print_explanation(yyjson_val *x)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *reason = NULL;
    (void)printf("%s\n", mr_json_get_text(x, "sentence"));
    yyjson_arr_foreach(yyjson_obj_get(x, "reasons"), at, max, reason)(void)
        printf("  %s\n", yyjson_get_str(reason));
    print_list("waits for", yyjson_obj_get(x, "waits_for"));
    print_list("needed by", yyjson_obj_get(x, "needed_by"));
    if (mr_json_get_text(x, "worker")[0])
        (void)printf("  worker: %s\n", mr_json_get_text(x, "worker"));
    if (mr_json_get_text(x, "place")[0])
        (void)printf("  value: %" PRIu64 " bytes, %s\n", mr_json_get_u64(x, "nbytes"),
            mr_json_get_text(x, "place"));
}

static const struct mr_config_spec explain_spec = {.program = "millrace explain",
    .summary = "Tells why a task ran, runs, waits, or never will.",
    .usage = "[flags] JOB KEY",
    .examples = "  millrace explain j1kq07ab-7 svm/cv/fit-00\n",
    .options = id_options,
    .options_count = MR_ARRAY_LEN(id_options),
    .rest_min = 2,
    .rest_max = 2};

int mr_command_explain(int argc, char **argv)
{
    struct id_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    yyjson_doc *doc = NULL;
    mr_config_load(&explain_spec, argc, argv, &k, &rest);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err) {
        MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(rest.items[0]));
        MR_AUTO(mr_free_ptr) char *key = mr_http_escape(mr_str(rest.items[1]));
        err = mr_client_call(
            &c, "GET", (struct mr_str){0}, &doc, &e, "/v1/jobs/%s/explain?key=%s", id, key);
    }
    if (!err && c.json)
        mr_client_print(doc);
    else if (!err)
        print_explanation(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("explain", &e) : MR_EXIT_OK;
}

static const struct mr_option cancel_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "reason",
        .type = MR_OPTION_TEXT,
        .value = "TEXT",
        .help = "kept with the job",
        .at = offsetof(struct id_config, reason)},
};
static const struct mr_config_spec cancel_spec = {.program = "millrace cancel",
    .summary = "Stops a job.",
    .usage = "[flags] JOB",
    .examples = "  millrace cancel j1kq07ab-7 --reason \"wrong data\"\n",
    .options = cancel_options,
    .options_count = MR_ARRAY_LEN(cancel_options),
    .rest_min = 1,
    .rest_max = 1};

static int cancel(const struct mr_client *c, const char *job, const char *reason, yyjson_doc **doc,
    struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(job));
    yyjson_mut_doc *m = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(m);
    size_t n = 0;
    yyjson_mut_doc_set_root(m, root);
    if (reason) (void)yyjson_mut_obj_add_str(m, root, "reason", reason);
    char *text = yyjson_mut_write(m, 0, &n);
    int err = mr_client_call(c, "POST", mr_str_of(text, n), doc, e, "/v1/jobs/%s:cancel", id);
    mr_release(text); /* both are the C library's */
    yyjson_mut_doc_free(m);
    return err;
}

int mr_command_cancel(int argc, char **argv)
{
    struct id_config k = {0};
    struct mr_texts rest = {0};
    struct mr_error e = {0};
    struct mr_client c = {0};
    yyjson_doc *doc = NULL;
    mr_config_load(&cancel_spec, argc, argv, &k, &rest);
    int err = mr_client_open(&k.client, &c, &e);
    if (!err) err = cancel(&c, rest.items[0], k.reason, &doc, &e);
    if (!err && c.json)
        mr_client_print(doc);
    else if (!err)
        mr_job_print(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    mr_client_fini(&c);
    mr_texts_fini(&rest);
    return err ? mr_client_fail("cancel", &e) : MR_EXIT_OK;
}
