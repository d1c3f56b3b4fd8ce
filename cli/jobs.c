/* The commands submit, status, watch, explain and cancel. */
#include "base/alloc.h"
#include "base/limits.h"
#include "cli/view/follow.h"
#include "cli/client/jobfile.h"
#include "cli/internal.h"
#include "cli/term/table.h"
#include "cli/term/text.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define LIST_BYTES_MAX ((size_t)1 << 20)

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
        .help = MR_DATA_HELP,
        .at = offsetof(struct submit_config, data)},
    {.name = "request-id",
        .type = MR_OPTION_TEXT,
        .value = "ID",
        .help = "idempotency key: a second submission with this id is the same job",
        .at = offsetof(struct submit_config, request_id)},
    {.name = "wait",
        .type = MR_OPTION_BOOL,
        .help = "wait for the end of the job",
        .at = offsetof(struct submit_config, wait)},
};
const struct mr_config_spec mr_submit_spec = {.program = "millrace submit",
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
    MR_AUTO(mr_free_ptr) char *data = NULL;
    int err = mr_client_open(&k->client, &c, e);
    if (!err) err = mr_client_data(&c, k->data, &data, e);
    if (!err) err = mr_jobfile_read(path, &k->set, data, &body, e);
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
    mr_config_load(&mr_submit_spec, argc, argv, &k, &rest);
    int err = submit(&k, rest.items[0], &code, &e);
    mr_texts_fini(&rest);
    mr_config_fini(&mr_submit_spec, &k);
    return err ? mr_client_fail("submit", &e) : code;
}

/* ---- existing jobs --------------------------------------------------------------------------- */

struct id_config {
    struct mr_client_options client;
    const char *reason;
    const char *state;
    const char *label;
    uint64_t limit;
};

static const struct mr_option id_options[] = {MR_CLIENT_OPTIONS};

static const struct mr_column job_columns[] = {{"ID", MR_COLUMN_WORD, false},
    {"STATE", MR_COLUMN_WORD, false}, {"DONE", MR_COLUMN_NUMBER, false},
    {"TASKS", MR_COLUMN_NUMBER, false}, {"FAILED", MR_COLUMN_NUMBER, true},
    {"NAME", MR_COLUMN_KEY, false}};

static void print_jobs(struct mr_table *t, yyjson_val *root, bool is_last)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *job = NULL;
    yyjson_arr_foreach(yyjson_obj_get(root, "jobs"), at, max, job)
    {
        yyjson_val *counts = yyjson_obj_get(job, "counts");
        mr_table_add(t, "%s", mr_json_get_text(job, "id"));
        mr_table_add(t, "%s", mr_job_state_word(mr_json_get_text(job, "state")));
        mr_table_add(t, "%" PRIu64, mr_json_get_u64(counts, "done"));
        mr_table_add(t, "%" PRIu64,
            mr_json_get_u64(counts, "submitted") - mr_json_get_u64(counts, "culled"));
        mr_table_add(t, "%" PRIu64, mr_json_get_u64(counts, "erred"));
        mr_table_add(t, "%s%s", mr_json_get_text(job, "name"),
            mr_job_is_unconverged(job) ? " (not converged)" : "");
    }
    mr_table_print(t);
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
        .help = "at most N jobs, the newest first",
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

/* Reads pages until `limit` jobs are printed. With --json each page is printed as a document. */
static int list_jobs(const struct mr_client *c, const struct id_config *k, struct mr_error *e)
{
    const char *state = "";
    int err = find_state(k->state, &state, e);
    MR_AUTO(mr_free_ptr) char *label = mr_http_escape(mr_str(k->label ? k->label : ""));
    MR_AUTO(mr_free_ptr) char *token = mr_copy_text("");
    MR_AUTO(mr_table_free)
    struct mr_table *table = mr_table_new(job_columns, MR_ARRAY_LEN(job_columns));
    for (uint64_t left = k->limit; !err && left;) {
        yyjson_doc *doc = NULL;
        uint64_t size = MR_MIN(left, UINT64_C(1000));
        err = mr_client_call(c, "GET", (struct mr_str){0}, &doc, e,
            "/v1/jobs?page_size=%" PRIu64 "&label=%s&page_token=%s%s%s", size, label, token,
            state[0] ? "&state=" : "", state);
        if (err) return err;
        yyjson_val *root = yyjson_doc_get_root(doc);
        uint64_t count = yyjson_arr_size(yyjson_obj_get(root, "jobs"));
        left -= MR_MIN(left, count);
        if (c->json)
            mr_client_print(doc);
        else
            print_jobs(table, root, !left);
        mr_release(token);
        token = mr_http_escape(mr_str(mr_json_get_text(root, "next_page_token")));
        yyjson_doc_free(doc);
        if (!token[0] || !count) break;
    }
    return err;
}

const struct mr_config_spec mr_status_spec = {.program = "millrace status",
    .summary = "Shows one job, or lists jobs.",
    .usage = "[flags] [JOB]",
    .examples =
        "  millrace status\n  millrace status --state failed --label team=fraud --limit 20\n"
        "  millrace status j1kq07ab-7 --json\n",
    .options = status_options,
    .options_count = MR_ARRAY_LEN(status_options),
    .rest_max = 1};

static int status(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    (void)code;
    if (!rest->count) return list_jobs(c, config, e);
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(rest->items[0]));
    return mr_client_show(c, mr_job_print, e, "/v1/jobs/%s", id);
}

int mr_command_status(int argc, char **argv)
{
    struct id_config k = {0};
    return mr_client_run(&mr_status_spec, argc, argv, &k, status);
}

const struct mr_config_spec mr_watch_spec = {.program = "millrace watch",
    .summary =
        "Follows a job until it ends. The exit code is 0 for done, 4 for failed or cancelled.",
    .usage = "[flags] JOB",
    .examples = "  millrace watch j1kq07ab-7\n",
    .options = id_options,
    .options_count = MR_ARRAY_LEN(id_options),
    .rest_min = 1,
    .rest_max = 1};

static int watch(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    yyjson_doc *last = NULL;
    bool is_screen = !c->json && isatty(STDOUT_FILENO);
    enum mr_follow_style style = c->json     ? MR_FOLLOW_JSON
                                 : is_screen ? MR_FOLLOW_SCREEN
                                             : MR_FOLLOW_LINES;
    (void)config;
    int err = mr_client_follow(c, rest->items[0], style, code, is_screen ? &last : NULL, e);
    yyjson_val *job = yyjson_obj_get(yyjson_doc_get_root(last), "job");
    if (!err && is_screen && mr_job_is_over(job)) mr_job_print(job);
    if (!err && is_screen && !mr_job_is_over(job)) (void)printf("job %s goes on\n", rest->items[0]);
    yyjson_doc_free(last);
    return err;
}

int mr_command_watch(int argc, char **argv)
{
    struct id_config k = {0};
    return mr_client_run(&mr_watch_spec, argc, argv, &k, watch);
}

static void print_list(const char *title, yyjson_val *list)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *item = NULL;
    struct mr_buf line;
    if (!yyjson_arr_size(list)) return;
    mr_buf_init(&line, LIST_BYTES_MAX);
    yyjson_arr_foreach(list, at, max, item) mr_buf_printf(&line, " %s", yyjson_get_str(item));
    mr_text_print(4, "  %s:%.*s\n", title, MR_STR_ARG(mr_buf_str(&line)));
    mr_buf_fini(&line);
}

static void print_explanation(yyjson_val *x)
{
    size_t at = 0;
    size_t max = 0;
    yyjson_val *reason = NULL;
    uint64_t nbytes = mr_json_get_u64(x, "nbytes");
    mr_text_print(0, "%s\n", mr_json_get_text(x, "sentence"));
    yyjson_arr_foreach(yyjson_obj_get(x, "reasons"), at, max, reason)
        mr_text_print(4, "  %s\n", yyjson_get_str(reason));
    print_list("waits for", yyjson_obj_get(x, "waits_for"));
    print_list("needed by", yyjson_obj_get(x, "needed_by"));
    if (mr_json_get_text(x, "worker")[0])
        (void)printf("  worker: %s\n", mr_json_get_text(x, "worker"));
    if (mr_json_get_text(x, "place")[0])
        (void)printf("  value: %" PRIu64 " %s, %s\n", nbytes, nbytes == 1 ? "byte" : "bytes",
            mr_json_get_text(x, "place"));
}

const struct mr_config_spec mr_explain_spec = {.program = "millrace explain",
    .summary = "Tells why a task ran, runs, waits, or never will run.",
    .usage = "[flags] JOB KEY",
    .examples = "  millrace explain j1kq07ab-7 svm/cv/fit-00\n",
    .options = id_options,
    .options_count = MR_ARRAY_LEN(id_options),
    .rest_min = 2,
    .rest_max = 2};

static int explain(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    (void)config;
    (void)code;
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(rest->items[0]));
    MR_AUTO(mr_free_ptr) char *key = mr_http_escape(mr_str(rest->items[1]));
    return mr_client_show(c, print_explanation, e, "/v1/jobs/%s/explain?key=%s", id, key);
}

int mr_command_explain(int argc, char **argv)
{
    struct id_config k = {0};
    return mr_client_run(&mr_explain_spec, argc, argv, &k, explain);
}

static const struct mr_option cancel_options[] = {
    MR_CLIENT_OPTIONS,
    {.name = "reason",
        .type = MR_OPTION_TEXT,
        .value = "TEXT",
        .help = "the reason, which the job keeps",
        .at = offsetof(struct id_config, reason)},
};
const struct mr_config_spec mr_cancel_spec = {.program = "millrace cancel",
    .summary = "Stops a job.",
    .usage = "[flags] JOB",
    .examples = "  millrace cancel j1kq07ab-7 --reason \"wrong data\"\n",
    .options = cancel_options,
    .options_count = MR_ARRAY_LEN(cancel_options),
    .rest_min = 1,
    .rest_max = 1};

static int cancel(const struct mr_client *c, const void *config, const struct mr_texts *rest,
    int *code, struct mr_error *e)
{
    const struct id_config *k = config;
    MR_AUTO(mr_free_ptr) char *id = mr_http_escape(mr_str(rest->items[0]));
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *body = mr_json_object();
    yyjson_mut_val *root = yyjson_mut_doc_get_root(body);
    (void)code;
    if (k->reason) (void)yyjson_mut_obj_add_str(body, root, "reason", k->reason);
    int err = mr_client_put(c, "POST", &body, &doc, e, "/v1/jobs/%s:cancel", id);
    if (!err && c->json) mr_client_print(doc);
    if (!err && !c->json) mr_job_print(yyjson_doc_get_root(doc));
    yyjson_doc_free(doc);
    return err;
}

int mr_command_cancel(int argc, char **argv)
{
    struct id_config k = {0};
    return mr_client_run(&mr_cancel_spec, argc, argv, &k, cancel);
}
